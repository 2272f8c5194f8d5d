"""Training from Python: the functions behind `elmokit pretrain`, `finetune` and `train`.

They take what the commands take, show the same progress on stderr, and return what was trained.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from typing import Any

from elmokit.cli.options import as_settings
from elmokit.cli.output import TaskListeners, progress_bar, watch_training
from elmokit.config import from_dict
from elmokit.errors import InputError
from elmokit.tasks.formats.reading import find_split
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task
from elmokit.text.given_sentences import check_text
from elmokit.text.sentences import Workers
from elmokit.text.word_vocab import WordVocab
from elmokit.training.pretraining.finetune import finetune as finetune_run
from elmokit.training.pretraining.presets import finetune_config, pretrain_config
from elmokit.training.pretraining.run import RunOptions
from elmokit.training.pretraining.run import pretrain as pretrain_run
from elmokit.training.schedules import Limits
from elmokit.weights.model_dir import PretrainedBiLM, load_model

AnyPath = str | os.PathLike[str]
Texts = AnyPath | Iterable[AnyPath]
"""One file; or several files as `Path`; or texts as strings, a sentence or paragraph each."""


def pretrain(
    corpus: Texts,
    output: AnyPath,
    *,
    preset: str | None = None,
    tokenizer: str | None = None,
    minutes: float | None = None,
    epochs: float | None = None,
    tokens: int | None = None,
    valid: Texts = (),
    vocab: AnyPath | None = None,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    device: str = "auto",
    workers: int = 1,
) -> PretrainedBiLM:
    """Train a biLM on raw text, as `elmokit pretrain` does, and load it.

    Args:
        corpus: See `Texts`.
        output: New model directory; with ``resume`` one that holds this run.
        preset: ``toy``, ``tiny``, ``small``, ``medium`` or ``original``; default: tiny.
        tokenizer: As ``--tokenizer``, such as ``simple:de``.
        minutes: Longest training time; ``epochs`` and ``tokens`` are further limits.
        epochs: Passes over the corpus.
        tokens: Words and sentence ends to read.
        valid: Held-out text; default: some sentences of the corpus.
        vocab: Vocabulary file; default: counted.
        settings: As ``--set``: dotted names and values.
        resume: Go on with an unfinished run.
        device: ``auto``, ``cpu`` or ``cuda``.
        workers: Processes that tokenize the text.

    Raises:
        InputError, ConfigError, FileExistsError, FileNotFoundError: as the command says.
    """
    own = as_settings({"text.tokenizer.name": tokenizer})
    config = pretrain_config(preset, overrides=[*own, *_overrides(settings)])
    with _files(output, corpus, valid) as (texts, held_out):
        options = RunOptions(
            limits=Limits(minutes=minutes, epochs=epochs, tokens=tokens), valid=held_out,
            vocab=None if vocab is None else WordVocab.read(vocab), resume=resume, device=device,
            workers=Workers(workers),
        )  # fmt: skip
        with watch_training("training", options) as watched:
            result = pretrain_run(config, texts, Path(output), watched)
    return load_model(result.model_dir)


def finetune(
    model: AnyPath,
    corpus: Texts,
    output: AnyPath,
    *,
    minutes: float | None = None,
    epochs: float | None = None,
    tokens: int | None = None,
    valid: Texts = (),
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    device: str = "auto",
    workers: int = 1,
) -> PretrainedBiLM:
    """Continue the training of a model on text of a domain, as `elmokit finetune` does.

    ``model`` is a directory or a name; the other arguments are those of `pretrain`. Perplexities
    before and after are in the files ``before.json`` and ``after.json`` of ``output``.
    """
    config = finetune_config(overrides=_overrides(settings))
    with _files(output, corpus, valid) as (texts, held_out):
        options = RunOptions(
            limits=Limits(minutes=minutes, epochs=epochs, tokens=tokens), valid=held_out,
            resume=resume, device=device, workers=Workers(workers),
        )  # fmt: skip
        with watch_training("fine-tuning", options) as watched:
            result = finetune_run(config, str(model), texts, Path(output), watched)
    return load_model(result.training.model_dir)


def train(
    task: str,
    data: AnyPath,
    output: AnyPath,
    *,
    model: AnyPath | None = None,
    embeddings: str = "elmo",
    vectors: AnyPath | None = None,
    epochs: int | None = None,
    minutes: float | None = None,
    seed: int = 0,
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
        embeddings: Word inputs, as ``--embeddings``.
        vectors: File of static vectors.
        epochs: At most.
        minutes: Longest time of training and scoring.
        seed: Of weights, order and dropout.
        settings: As ``--set``: dotted names and values.
        resume: Go on with an unfinished run.
        device: ``auto``, ``cpu`` or ``cuda``.
    """
    suffixes = find_task(task).suffixes
    train_path, dev_path = (find_split(Path(data), name, suffixes) for name in ("train", "dev"))
    limits = {"seed": seed} | ({} if epochs is None else {"epochs": epochs})
    own = {"task": task, "inputs": {"embeddings": embeddings}, "train": limits}
    config = from_dict(TaskRunConfig, own, source="the arguments", overrides=_overrides(settings))
    with progress_bar("layers") as update:
        shown = TaskListeners(update)
        train_task(
            config, train_path, dev_path, Path(output), model=None if model is None else str(model),
            vectors=None if vectors is None else Path(vectors), device=device, resume=resume,
            minutes=minutes, on_step=shown.on_step, on_epoch=shown.on_epoch,
            on_layers=lambda done, total: update(done, total=total, description="layers"),
        )  # fmt: skip
    return TaskRun.load(output, device=device)


def _overrides(settings: Mapping[str, Any] | None) -> list[str]:
    return as_settings(settings or {})


@contextmanager
def _files(output: AnyPath, *texts: Texts) -> Iterator[list[list[Path]]]:
    """Yield the files of each; strings are written beside the output, where a resumed run has them.

    They are removed at the end.
    """
    folder = Path(f"{output}.texts")
    try:
        yield [_as_files(text, folder / f"{number}.jsonl") for number, text in enumerate(texts)]
    finally:
        for number in range(len(texts)):
            (folder / f"{number}.jsonl").unlink(missing_ok=True)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _as_files(texts: Texts, scratch: Path) -> list[Path]:
    if isinstance(texts, str | os.PathLike):
        return [Path(texts)]
    items: Sequence[AnyPath] = list(texts)
    if not any(isinstance(item, str) for item in items):
        return [Path(item) for item in items]
    strings = [item for item in items if isinstance(item, str)]
    if len(strings) < len(items):
        raise InputError("The texts are files (Path) or strings, not both in one list.")
    for number, text in enumerate(strings, start=1):
        check_text(text, where=f"text {number}")
    scratch.parent.mkdir(parents=True, exist_ok=True)
    rows = (dumps({"text": text}, ensure_ascii=False) for text in strings)
    scratch.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return [scratch]
