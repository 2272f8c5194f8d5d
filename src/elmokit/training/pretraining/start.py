"""What a training of a biLM starts from: its settings, its directory, its prepared text."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from elmokit.bilm.bilm import BiLMState
from elmokit.corpus.preparation import (
    PreparedText,
    check_same_text,
    find_text,
    is_finished,
    open_text,
    prepare_text,
)
from elmokit.corpus.text_shards import OnPreparation, SentenceReader
from elmokit.errors import ConfigError
from elmokit.evaluation.perplexity import PerplexityReport
from elmokit.files.json_files import read_json
from elmokit.files.remote import as_address
from elmokit.files.sources import STANDARD_INPUT, find_files
from elmokit.inference.device import find_device, has_quick_bf16
from elmokit.jobs.identity import Identity
from elmokit.jobs.job import NOT_RESUMABLE, RUN_FILE, Job, is_begun, open_job
from elmokit.text.normalization import Normalization
from elmokit.text.sentences import ONE_PROCESS, Workers
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.training.distributed import World, world
from elmokit.training.loop import StepReport
from elmokit.training.pretraining.run_config import RunConfig
from elmokit.training.schedules import Limits
from elmokit.weights.locate import CONFIG_NAME

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingEvent:
    report: StepReport[BiLMState]
    tokens_per_second: float
    """Since the last logged update, without validations and checkpoints."""
    validation: PerplexityReport | None = None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of one run, besides its configuration and text."""

    limits: Limits = field(default_factory=Limits)
    valid: Sequence[Path] = ()
    vocab: WordVocab | None = None
    """Words to predict; none: the base model's, or counted from the corpus."""
    resume: bool = False
    """Go on if the directory holds this run."""
    device: str = "auto"
    """``auto``, ``cpu`` or ``cuda``. Under `torchrun` every process takes its own."""
    workers: Workers = ONE_PROCESS
    reader: SentenceReader | None = None
    """Reads the corpus and the validation text; none: they are lines of raw text."""
    save_on_signals: bool = False
    """On Ctrl-C, SIGTERM and SIGHUP in the main thread, finish the update and save."""
    on_preparation: OnPreparation | None = None
    """Called on rank 0 from time to time while the text is prepared."""
    on_event: Callable[[TrainingEvent], None] = lambda event: None
    """Called on rank 0 after every update."""
    on_validation: Callable[[int, int], None] = lambda done, total: None
    """Called on rank 0 with the number of held-out sentences scored and in total."""


@dataclass(frozen=True)
class Start:
    """What a run starts from, on every rank: its directory is held and its text is ready."""

    config: RunConfig
    text: PreparedText
    run_dir: Path
    options: RunOptions = RunOptions()
    processes: World = World()  # noqa: RUF009 (frozen)
    job: Job | None = None


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

    The vocabulary is ``fixed_vocab``, or counted. ``base`` (path and hash of the base model) and
    ``general`` (text that finetune scores) are recorded.
    """
    inputs = {
        **({} if base is None else {"model": base, "general": _places(general)}),
        "corpus": _places(corpus),
        "valid": _places(options.valid),
        "vocab": "counted" if fixed_vocab is None else f"sha256 {fixed_vocab.sha256}",
        "reader": None if options.reader is None else options.reader.name,
    }
    config = _with_precision(config, run_dir, options.device)
    with world(options.device) as processes, ExitStack() as stack:
        num_rows = config.train.batch_size
        if num_rows % processes.size:
            raise ConfigError(
                f"train.batch_size: {processes.size} processes cannot share {num_rows} rows evenly."
            )
        job = text = None
        if processes.is_main:
            if general:
                find_files(list(general))  # must be there at the end, too
            identity = Identity(config, inputs)
            job = stack.enter_context(
                open_job(run_dir, command, identity, resume=options.resume, result_name=CONFIG_NAME)
            )
            if not job.record:
                if not is_finished(corpus):
                    build_tokenizer(tokenizer)  # fails before any text is read
                sources = find_text(corpus, options.valid, run_dir=run_dir)
                job.prepare()
                text = prepare_text(
                    sources, run_dir, text=replace(config.text, tokenizer=tokenizer),
                    vocab=config.vocab, fixed_vocab=fixed_vocab, normalization=normalization,
                    normalization_is_fixed=base is not None, reader=options.reader,
                    workers=options.workers, on_preparation=options.on_preparation,
                )  # fmt: skip
        processes.barrier()  # the others wait for the text
        if text is None:
            text = open_text(corpus, run_dir)
            if job is not None:
                sources = find_text(corpus, options.valid, may_be_gone=True, run_dir=run_dir)
                check_same_text(text, sources, run_dir)
        yield Start(config, text, run_dir, options, processes, job)


def _with_precision(config: RunConfig, run_dir: Path, device: str) -> RunConfig:
    """Return the settings with a precision instead of ``auto``: that of the run, if it is begun."""
    if config.train.precision != "auto":
        return config
    if is_begun(run_dir):
        recorded = read_json(run_dir / RUN_FILE, advice=NOT_RESUMABLE, required=("config",))
        precision = (recorded["config"].get("train") or {}).get("precision", "fp32")
    else:
        precision = "bf16" if has_quick_bf16(find_device(device)) else "fp32"
        log.info("matrix products in %s, which is faster here (train.precision)", precision)
    return replace(config, train=replace(config.train, precision=precision))


def _places(paths: Sequence[Path]) -> list[str]:
    """Return paths or patterns as they are recorded, independent of the working directory."""
    # a pipe has another name each time
    places = (
        STANDARD_INPUT if path == STANDARD_INPUT or path.is_fifo() else path.resolve()
        for path in paths
    )
    return [as_address(path) or str(place) for path, place in zip(paths, places, strict=True)]
