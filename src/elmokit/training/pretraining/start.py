"""What pre-training and fine-tuning do alike before the first update: options, directory, text."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
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
)
from elmokit.corpus.text_shards import OnPreparation, TextConfig
from elmokit.text.char_vocab import Normalization
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.training.distributed import World
from elmokit.training.pretraining.run import TrainingEvent
from elmokit.training.pretraining.run_config import RunConfig
from elmokit.training.pretraining.run_dir import (
    check_run,
    exclusive_lock,
    is_recorded,
    mark_run,
)
from elmokit.training.schedules import Limits


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How one run is made, beside its configuration and its text."""

    limits: Limits = field(default_factory=Limits)
    """How long to train; nothing set: ``train.num_epochs``."""
    valid: Sequence[Path] = ()
    """Validation text; none: a few sentences of the corpus are held out."""
    vocab: WordVocab | None = None
    """Words to predict; none: those of the model that is continued, or counted from the corpus."""
    resume: bool = False
    """Go on from the last checkpoint of the run directory."""
    device: str = "auto"
    """``auto``, ``cpu`` or ``cuda``. Under `torchrun` every process takes its own."""
    save_on_signals: bool = False
    """At Ctrl-C and SIGTERM finish the update and write a checkpoint."""
    on_preparation: OnPreparation | None = None
    """Called on rank 0 now and then while the text is prepared."""
    on_event: Callable[[TrainingEvent], None] | None = None
    """Called on rank 0 after every update."""


def ready_text(
    config: RunConfig,
    corpus: Sequence[Path],
    run_dir: Path,
    options: RunOptions,
    processes: World,
    held: ExitStack,
    *,
    origin: Mapping[str, Any],
    text: TextConfig,
    vocab: VocabConfig,
    normalization: Normalization,
    fixed_vocab: WordVocab | None,
) -> PreparedText:
    """Take the run directory, or the run in it, and return its text; on every rank.

    Args:
        config: Of the run, as it will be recorded.
        corpus: Text files, or one directory of finished shards.
        run_dir: Of the run.
        options: Of the run; its ``vocab`` is not used.
        processes: That train together; rank 0 prepares the text.
        held: Keeps the run directory for this run alone until it is closed.
        origin: What else the run is made of, as it will be recorded.
        text: Tokenizer and shard size.
        vocab: Size of a vocabulary that is counted.
        normalization: Of the text.
        fixed_vocab: The vocabulary; none: it is counted.

    Raises:
        FileNotFoundError: if there is no such text.
        FileExistsError, ConfigError: as `check_run`, `exclusive_lock` and `check_same_text`.
        FormatError: as `prepare_text`.
    """
    config.train.rows_per_process(processes.size)
    shard_dir = corpus[0] if is_finished(corpus) else None
    if not processes.is_main:
        processes.barrier()  # rank 0 prepares the text
        return open_text(shard_dir, run_dir)
    was_begun = is_recorded(run_dir)
    check_run(run_dir, config, origin, resume=options.resume)
    if not was_begun and shard_dir is None:
        build_tokenizer(text.tokenizer)  # a missing library is told before files are read
    sources = find_text(corpus, options.valid, may_be_gone=was_begun)
    mark_run(run_dir)
    held.enter_context(exclusive_lock(run_dir))
    is_begun = is_recorded(run_dir)
    if is_begun != was_begun:  # by another process, which has ended since
        check_run(run_dir, config, origin, resume=options.resume)
    if is_begun:
        prepared = open_text(shard_dir, run_dir)
        check_same_text(prepared, sources, run_dir)
    else:
        prepared = prepare_text(
            sources,
            run_dir,
            text=text,
            vocab=vocab,
            normalization=normalization,
            fixed_vocab=fixed_vocab,
            on_preparation=options.on_preparation,
        )
    processes.barrier()
    return prepared
