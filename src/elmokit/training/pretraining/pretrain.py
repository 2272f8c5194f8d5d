"""biLM pre-training: from raw text to a model directory, resumable at any moment."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.config import parse_record, to_dict
from elmokit.corpus.preparation import (
    PreparedText,
    VocabConfig,
    check_same_text,
    find_text,
    is_finished,
    open_text,
    prepare_text,
    vocab_origin,
)
from elmokit.corpus.text_shards import OnPreparation, SentenceReader, TextConfig
from elmokit.errors import InputError, as_input_error
from elmokit.files.json_files import read_json
from elmokit.files.remote import as_address
from elmokit.files.sources import STANDARD_INPUT, find_files
from elmokit.jobs.identity import FIXED, Identity
from elmokit.jobs.job import NOT_RESUMABLE, RUN_FILE, Job, is_begun, open_job
from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.text.worker_processes import ONE_PROCESS, Workers
from elmokit.training.distributed import World, world
from elmokit.training.pretraining.run import TrainingEvent, TrainingResult, TrainingRun
from elmokit.training.pretraining.run_config import RunConfig
from elmokit.training.pretraining.validation import OnValidation
from elmokit.training.schedules import Limits
from elmokit.weights.locate import CONFIG_NAME
from elmokit.weights.model_dir import PretrainedBiLM
from elmokit.weights.tensor_files import check_name

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(RunConfig):
    """A pre-training run, except for its corpus and budget."""

    text: TextConfig = field(default_factory=TextConfig, metadata=FIXED)
    vocab: VocabConfig = field(default_factory=VocabConfig, metadata=FIXED)
    model: BiLMConfig = field(default_factory=BiLMConfig, metadata=FIXED)
    softmax: SoftmaxConfig = field(default_factory=SoftmaxConfig, metadata=FIXED)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of one run, besides its configuration and text."""

    limits: Limits = field(default_factory=Limits)
    """How long to train."""
    valid: Sequence[Path] = ()
    """Validation text; none: a few sentences of the corpus are held out."""
    vocab: WordVocab | None = None
    """Words to predict; none: the base model's, or counted from the corpus."""
    resume: bool = False
    """Go on if the directory holds this run."""
    device: str = "auto"
    """``auto``, ``cpu`` or ``cuda``. Under `torchrun` every process takes its own."""
    workers: Workers = ONE_PROCESS
    """Who tokenizes the text."""
    reader: SentenceReader | None = None
    """Reads the corpus and the validation text; none: they are lines of raw text."""
    save_on_signals: bool = False
    """On Ctrl-C, SIGTERM and SIGHUP, finish the update and write a checkpoint."""
    on_preparation: OnPreparation | None = None
    """Called on rank 0 from time to time while the text is prepared."""
    on_event: Callable[[TrainingEvent], None] | None = None
    """Called on rank 0 after every update."""
    on_validation: OnValidation | None = None
    """Called on rank 0 while held-out sentences are scored."""


def pretrain(
    config: PretrainConfig,
    corpus: Sequence[Path],
    run_dir: Path,
    options: RunOptions = RunOptions(),
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
        text=config.text,
        vocab=config.vocab,
        normalization=config.model.char_vocab.normalization,
        fixed_vocab=options.vocab,
    ) as started:
        return started.training(new_model(config, started.text)).run()


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


@dataclass(frozen=True)
class StartedRun:
    """A run whose directory is held and whose text is ready, on every rank."""

    config: RunConfig
    run_dir: Path
    options: RunOptions
    processes: World
    text: PreparedText
    job: Job | None
    """On rank 0."""

    def training(self, model: PretrainedBiLM, *, softmax_first_share: float = 0.0) -> TrainingRun:
        """Build the training of a model; record it, now that nothing can be refused any more."""
        limits = limits_of(self.run_dir, self.options.limits)
        run = TrainingRun(
            self.config, self.text, model, self.run_dir, self.processes, limits,
            softmax_first_share=softmax_first_share, on_event=self.options.on_event,
            on_validation=self.options.on_validation, save_on_signals=self.options.save_on_signals,
        )  # fmt: skip
        if self.job is not None:
            self.job.begin(limits=to_dict(limits))
        return run


@contextmanager
def start_run(
    command: str,
    config: RunConfig,
    corpus: Sequence[Path],
    run_dir: Path,
    options: RunOptions,
    *,
    text: TextConfig,
    vocab: VocabConfig,
    normalization: Normalization,
    fixed_vocab: WordVocab | None,
    model: Mapping[str, Any] | None = None,
    other_text: Sequence[Path] = (),
) -> Iterator[StartedRun]:
    """Hold a run directory, new or to be resumed, and prepare the text.

    ``options.vocab`` is not used: the vocabulary is ``fixed_vocab``, or counted. ``model`` is the
    path and hash of the base model, to be recorded; files of ``other_text`` must exist.
    """
    inputs = {
        **({} if model is None else {"model": model}),
        "corpus": absolute_paths(corpus),
        "valid": absolute_paths(options.valid),
        "vocab": vocab_origin(fixed_vocab),
        "reader": None if options.reader is None else options.reader.name,
    }
    check_name(run_dir)
    with world(options.device) as processes, ExitStack() as held:
        config.train.check_rows(processes.size)
        if not processes.is_main:
            processes.barrier()  # rank 0 prepares the text
            yield StartedRun(
                config, run_dir, options, processes, open_text(corpus, run_dir), job=None
            )
            return
        if other_text:
            find_files(list(other_text))
        job = held.enter_context(
            open_job(
                run_dir, command, Identity(config, inputs), resume=options.resume,
                result_name=CONFIG_NAME,
            )
        )  # fmt: skip
        was_begun = bool(job.record)
        if not was_begun and not is_finished(corpus):
            build_tokenizer(text.tokenizer)  # fails before any text is read
        sources = find_text(corpus, options.valid, may_be_gone=was_begun, run_dir=run_dir)
        if was_begun:
            prepared = open_text(corpus, run_dir)
            check_same_text(prepared, sources, run_dir)
        else:
            job.prepare()
            prepared = prepare_text(
                sources,
                run_dir,
                text=text,
                vocab=vocab,
                normalization=normalization,
                normalization_is_fixed=model is not None,
                fixed_vocab=fixed_vocab,
                on_preparation=options.on_preparation,
                workers=options.workers,
                reader=options.reader,
            )
        processes.barrier()
        try:
            yield StartedRun(config, run_dir, options, processes, prepared, job)
        except InputError as error:
            if not job.record:
                error.add_note(
                    "Smaller batches: --set train.batch_size=…, --set train.unroll_steps=… What is "
                    f"prepared of the text in {run_dir} is used again."
                )
            raise


def limits_of(run_dir: Path, limits: Limits) -> Limits:
    """Return the limits of a run: those given, else those recorded; log a change."""
    recorded = _recorded_limits(run_dir) if is_begun(run_dir) else None
    if recorded is None or limits == recorded:
        return limits
    if limits == Limits():
        log.info(
            "the run goes on to its limit: %s. --minutes, --epochs or --tokens sets another",
            recorded.describe(),
        )  # fmt: skip
        return recorded
    log.info("the limit is now %s (before: %s)", limits.describe(), recorded.describe())
    return limits


def _recorded_limits(run_dir: Path) -> Limits | None:
    """Return the limits in ``run.json``; None for a run of an earlier version."""
    path = run_dir / RUN_FILE
    recorded = read_json(path, advice=NOT_RESUMABLE).get("limits")
    if recorded is None:
        return None
    return parse_record(Limits, recorded, source=f"{path}, limits", advice=NOT_RESUMABLE)


def absolute_paths(paths: Sequence[Path]) -> list[str]:
    """Return paths or patterns as they are recorded, independent of the working directory."""
    return [as_address(path) or str(_absolute(path)) for path in paths]


def _absolute(path: Path) -> Path:
    try:
        return path if path == STANDARD_INPUT else path.resolve()
    except RuntimeError as error:  # of Python 3.11 and 3.12, for a loop of links
        raise InputError(f"{path}: {error}. Give another path.") from error
