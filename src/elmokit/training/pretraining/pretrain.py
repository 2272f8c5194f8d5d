"""biLM pre-training: from raw text to a model directory, resumable at any moment."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from elmokit.bilm.bilm import BiLMConfig
from elmokit.corpus.preparation import (
    PreparedText,
    check_same_text,
    find_text,
    is_finished,
    open_text,
    prepare_text,
    vocab_origin,
)
from elmokit.errors import InputError, as_input_error
from elmokit.files.remote import as_address
from elmokit.files.sources import STANDARD_INPUT, find_files
from elmokit.jobs.identity import FIXED, Identity
from elmokit.jobs.job import open_job
from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.training.distributed import world
from elmokit.training.pretraining.run import RunOptions, Start, TrainingResult, TrainingRun
from elmokit.training.pretraining.run_config import RunConfig
from elmokit.weights.locate import CONFIG_NAME
from elmokit.weights.model_dir import PretrainedBiLM
from elmokit.weights.tensor_files import check_name


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(RunConfig):
    """A pre-training run, except for its corpus and budget."""

    model: BiLMConfig = field(default_factory=BiLMConfig, metadata=FIXED)


def pretrain(
    config: PretrainConfig,
    corpus: Sequence[Path],
    run_dir: Path,
    options: RunOptions = RunOptions(),  # noqa: B008 (frozen)
) -> TrainingResult:
    """Train a biLM on raw text; ``run_dir`` is a model directory at the end.

    ``corpus`` is text files, or one directory of finished shards. In fp32 on the CPU, with a budget
    in epochs or tokens, a resumed run has bit for bit the losses of one that was never stopped.

    Raises:
        ValueError: if the corpus is smaller than one batch.
        ConfigError: if a resumed run has another model, text, vocabulary or batch, or the processes
            cannot share the batch.
        FileExistsError: if ``run_dir`` holds a run and ``resume`` is not set, holds other files, or
            another process trains there.
        FileNotFoundError: if there is no such text.
        Stopped: after a signal and its checkpoint.
    """
    with start_run(
        "pretrain",
        config,
        corpus,
        run_dir,
        options,
        tokenizer=config.text.tokenizer,
        normalization=config.model.char_vocab.normalization,
        fixed_vocab=options.vocab,
    ) as start:
        return TrainingRun(start, new_model(config, start.text)).run()


def new_model(config: PretrainConfig, text: PreparedText) -> PretrainedBiLM:
    """Build an untrained model for prepared text."""
    num_words = None if config.model.char_cnn is not None else len(text.vocab)
    characters = config.model.char_vocab
    form = text.shards.metadata.get("normalization", characters.normalization)
    with as_input_error():  # settings meet the vocabulary's size and the shards here
        characters = replace(characters, normalization=form)
        model = PretrainedBiLM(
            replace(config.model, num_words=num_words, char_vocab=characters),
            word_vocab=text.vocab,
            softmax_config=config.softmax,
            tokenizer=_tokenizer_of(config, text),
            warm_text=text.warm_text(),
        )
    generator = torch.Generator().manual_seed(config.train.seed)
    model.reset_parameters(generator)
    assert model.softmax is not None
    model.softmax.reset_parameters(generator)
    return model


def _tokenizer_of(config: PretrainConfig, text: PreparedText) -> TokenizerConfig:
    """Return the tokenizer of the shards; finished shards may differ from the configuration."""
    if text.shards.tokenizer is not None:
        return text.shards.tokenizer
    tokenizer = config.text.tokenizer
    return replace(tokenizer, name=build_tokenizer(tokenizer).name)


@contextmanager
def start_run(
    command: str,
    config: RunConfig,
    corpus: Sequence[Path],
    run_dir: Path,
    options: RunOptions,
    *,
    tokenizer: TokenizerConfig,
    normalization: Normalization,
    fixed_vocab: WordVocab | None,
    base: Mapping[str, Any] | None = None,
    general: Sequence[Path] = (),
) -> Iterator[Start]:
    """Hold a run directory, new or to be resumed, and prepare the text.

    ``options.vocab`` is not used: the vocabulary is ``fixed_vocab``, or counted. ``base`` is the
    path and hash of the base model and ``general`` the text that finetune scores, to be recorded.
    """
    inputs = {
        **({} if base is None else {"model": base, "general": _places(general)}),
        "corpus": _places(corpus),
        "valid": _places(options.valid),
        "vocab": vocab_origin(fixed_vocab),
        "reader": None if options.reader is None else options.reader.name,
    }
    check_name(run_dir)
    with world(options.device) as processes, ExitStack() as stack:
        config.train.check_rows(processes.size)
        if not processes.is_main:
            processes.barrier()  # rank 0 prepares the text
            yield Start(config, open_text(corpus, run_dir), run_dir, options, processes)
            return
        if general:
            find_files(list(general))  # must be there at the end, too
        identity = Identity(config, inputs)
        job = stack.enter_context(
            open_job(run_dir, command, identity, resume=options.resume, result_name=CONFIG_NAME)
        )
        was_begun = bool(job.record)
        if not was_begun and not is_finished(corpus):
            build_tokenizer(tokenizer)  # fails before any text is read
        sources = find_text(corpus, options.valid, may_be_gone=was_begun, run_dir=run_dir)
        if was_begun:
            prepared = open_text(corpus, run_dir)
            check_same_text(prepared, sources, run_dir)
        else:
            job.prepare()
            prepared = prepare_text(
                sources,
                run_dir,
                text=replace(config.text, tokenizer=tokenizer),
                vocab=config.vocab,
                normalization=normalization,
                normalization_is_fixed=base is not None,
                fixed_vocab=fixed_vocab,
                on_preparation=options.on_preparation,
                workers=options.workers,
                reader=options.reader,
            )
        processes.barrier()
        try:
            yield Start(config, prepared, run_dir, options, processes, job)
        except InputError as error:
            if not job.record:
                error.add_note(
                    "Smaller batches: --set train.batch_size=…, --set train.unroll_steps=… What is "
                    f"prepared of the text in {run_dir} is used again."
                )
            raise


def _places(paths: Sequence[Path]) -> list[str]:
    """Return paths or patterns as they are recorded, independent of the working directory."""
    return [
        as_address(path) or str(path if path == STANDARD_INPUT else path.resolve())
        for path in paths
    ]
