"""Training from Python: the functions behind `elmokit pretrain`, `finetune` and `train`.

They take what the commands take, show the same progress on stderr, and return what was trained.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from elmokit.cli.commands.finetune import finetune as finetune_command
from elmokit.cli.commands.pretrain import pretrain as pretrain_command
from elmokit.cli.commands.train import train as train_command
from elmokit.cli.options import as_settings, expanded
from elmokit.tasks.inputs.settings import EmbeddingKind
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.weights.model_dir import PretrainedBiLM, load_model

AnyPath = str | os.PathLike[str]
Files = AnyPath | Iterable[AnyPath]
"""One file or folder of text, or several."""


def pretrain(
    corpus: Files,
    output: AnyPath,
    *,
    preset: str | None = None,
    tokenizer: str | None = None,
    minutes: float | None = None,
    epochs: float | None = None,
    tokens: int | None = None,
    valid: Files = (),
    vocab: AnyPath | None = None,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    device: str = "auto",
    workers: int = 1,
) -> PretrainedBiLM:
    """Train a biLM on raw text, as `elmokit pretrain` does, and load it.

    Args:
        corpus: Files of text, as ``CORPUS`` of the command.
        output: New model directory; with ``resume`` one that holds this run.
        preset: ``toy``, ``tiny``, ``small``, ``medium`` or ``original``; default: tiny.
        tokenizer: As ``--tokenizer``, such as ``simple:de``.
        minutes: Longest training time; ``epochs`` and ``tokens`` are further limits.
        epochs: Passes over the corpus.
        tokens: Words and sentence ends to read.
        valid: Held-out text; default: some sentences of the corpus.
        vocab: Vocabulary file; default: counted.
        settings: As ``--set``: dotted names and values, which override the other arguments; None
            switches a setting off.
        resume: Go on with an unfinished run.
        device: ``auto``, ``cpu`` or ``cuda``.
        workers: Processes that tokenize the text.

    Raises:
        InputError, ConfigError, FileExistsError, FileNotFoundError: as the command says.
        Stopped: after Ctrl-C and a checkpoint, from which ``resume`` goes on.
    """
    pretrain_command(
        _paths(corpus), output=expanded(output), preset=preset, tokenizer=tokenizer,
        minutes=minutes, epochs=epochs, tokens=tokens, valid=_paths(valid),
        vocab=None if vocab is None else expanded(vocab),
        set_=as_settings(settings or {}), resume=resume, device=device, workers=workers,
    )  # fmt: skip
    return load_model(output)


def finetune(
    model: AnyPath,
    corpus: Files,
    output: AnyPath,
    *,
    minutes: float | None = None,
    epochs: float | None = None,
    tokens: int | None = None,
    valid: Files = (),
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    device: str = "auto",
    workers: int = 1,
) -> PretrainedBiLM:
    """Continue the training of a model on text of a domain, as `elmokit finetune` does.

    ``model`` is a directory or a name; the other arguments are those of `pretrain`. Perplexities
    before and after are in the files ``before.json`` and ``after.json`` of ``output``.
    """
    finetune_command(
        str(model), _paths(corpus), output=expanded(output), minutes=minutes, epochs=epochs,
        tokens=tokens, valid=_paths(valid), set_=as_settings(settings or {}), resume=resume,
        device=device, workers=workers,
    )  # fmt: skip
    return load_model(output)


def train(
    task: str,
    data: AnyPath,
    output: AnyPath,
    *,
    model: AnyPath | None = None,
    embeddings: EmbeddingKind | None = None,
    vectors: AnyPath | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    device: str = "auto",
) -> TaskRun:
    """Train a task model, as `elmokit train` does, and load its best epoch.

    Args:
        task: ``pos``, ``ner``, ``srl``, ``sentiment``, ``nli``, ``qa`` or ``coref``.
        data: Directory with one train… and one dev… file.
        output: New directory of the run.
        model: Directory or name of the biLM; default: the English one.
        embeddings: Word inputs, as ``--embeddings``; default: elmo.
        vectors: File of static vectors.
        epochs: At most.
        seed: Of weights, order and dropout; default: 0.
        settings: As ``--set``: dotted names and values; None switches a setting off.
        resume: Go on with an unfinished run.
        device: ``auto``, ``cpu`` or ``cuda``.
    """
    train_command(
        task, output=expanded(output), data=expanded(data),
        model=None if model is None else str(model), embeddings=embeddings,
        vectors=None if vectors is None else expanded(vectors), epochs=epochs, seed=seed,
        set_=as_settings(settings or {}), resume=resume, device=device,
    )  # fmt: skip
    return TaskRun.load(output, device=device)


def _paths(files: Files) -> list[Path]:
    is_one = isinstance(files, str | os.PathLike)
    return [expanded(file) for file in ([files] if is_one else files)]
