"""The start of pre-training and fine-tuning: options, run directory, prepared text."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

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
from elmokit.errors import InputError
from elmokit.files.sources import find_files
from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.text.worker_processes import ONE_PROCESS, Workers
from elmokit.training.distributed import World, world
from elmokit.training.pretraining.run import TrainingEvent, TrainingRun
from elmokit.training.pretraining.run_config import RunConfig
from elmokit.training.pretraining.validation import OnValidation
from elmokit.training.run_dir import (
    absolute_paths,
    check_run,
    exclusive_lock,
    is_recorded,
    limits_of,
    mark_run,
    record_run,
)
from elmokit.training.schedules import Limits
from elmokit.weights.model_dir import PretrainedBiLM

FIXED_SETTINGS = (
    "model", "text", "vocab", "softmax", "optimizer.name", "train.batch_size",
    "train.unroll_steps", "train.seed", "train.shuffle", "train.precision",
)  # fmt: skip
"""Settings that a resumed run cannot change."""


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
    """Continue from the last checkpoint."""
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


@dataclass(frozen=True)
class StartedRun:
    """A run whose directory is locked and whose text is ready, on every rank."""

    config: RunConfig
    run_dir: Path
    options: RunOptions
    processes: World
    text: PreparedText
    origin: Mapping[str, Any]

    def training(self, model: PretrainedBiLM, *, softmax_first_share: float = 0.0) -> TrainingRun:
        """Build the training of a model and record it in the run directory."""
        run = TrainingRun(
            self.config,
            self.text,
            model,
            self.run_dir,
            self.processes,
            self.options.limits,
            resume=self.options.resume,
            softmax_first_share=softmax_first_share,
        )
        if self.processes.is_main:
            record_run(self.run_dir, self.config, self.origin, self.options.limits)
        return run


@contextmanager
def start_run(
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
    """Lock a run directory, new or to be resumed, and prepare the text.

    ``options.vocab`` is not used: the vocabulary is ``fixed_vocab``, or counted. ``model`` is the
    path and hash of the base model, to be recorded; files of ``other_text`` must exist.

    Raises:
        FileNotFoundError: if there is no such text.
        FileExistsError, ConfigError: as `check_run`, `exclusive_lock` and `check_same_text`.
        FormatError: as `prepare_text`.
    """
    origin = {
        **({} if model is None else {"model": model}),
        "corpus": absolute_paths(corpus),
        "valid": absolute_paths(options.valid),
        "vocab": vocab_origin(fixed_vocab),
        "reader": None if options.reader is None else options.reader.name,
    }
    with world(options.device) as processes, ExitStack() as locks:
        config.train.rows_per_process(processes.size)
        if not processes.is_main:
            processes.barrier()  # rank 0 prepares the text
            prepared = open_text(corpus, run_dir)
        else:
            if other_text:
                find_files(list(other_text))
            was_begun = is_recorded(run_dir)
            check_run(run_dir, config, origin, resume=options.resume, fixed=FIXED_SETTINGS)
            if not was_begun and not is_finished(corpus):
                build_tokenizer(text.tokenizer)  # fails before any text is read
            sources = find_text(corpus, options.valid, may_be_gone=was_begun, run_dir=run_dir)
            mark_run(run_dir)
            locks.enter_context(exclusive_lock(run_dir))
            is_begun = is_recorded(run_dir)
            if is_begun != was_begun:  # by another process that has ended since
                check_run(run_dir, config, origin, resume=options.resume, fixed=FIXED_SETTINGS)
            if is_begun:
                prepared = open_text(corpus, run_dir)
                check_same_text(prepared, sources, run_dir)
            else:
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
        options = replace(options, limits=limits_of(run_dir, options.limits))
        try:
            yield StartedRun(config, run_dir, options, processes, prepared, origin)
        except InputError as error:
            if processes.is_main and not is_recorded(run_dir):
                error.add_note(_smaller_batches(run_dir, text_is_kept=not is_finished(corpus)))
            raise


def _smaller_batches(run_dir: Path, *, text_is_kept: bool) -> str:
    settings = "--set train.batch_size=…, --set train.unroll_steps=…"
    if not text_is_kept:
        return f"Smaller batches: {settings}."
    return (
        f"The prepared text is kept in {run_dir}: the same command with other training settings "
        f"({settings}) uses it."
    )
