"""How a training run looks on stderr: a bar for preparation and training, a note on early ends."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from elmokit.cli.error_messages import note_what_is_safe
from elmokit.cli.progress import progress_bar

if TYPE_CHECKING:
    from elmokit.corpus.text_shards import Preparation
    from elmokit.text.word_vocab import WordVocab
    from elmokit.training.pretraining.run import TrainingEvent
    from elmokit.training.pretraining.start import RunOptions
    from elmokit.training.schedules import Limits


@dataclass(frozen=True)
class Listeners:
    """Callbacks of a run, see `RunOptions`."""

    on_preparation: "Callable[[Preparation], None]"
    on_event: "Callable[[TrainingEvent], None]"


@contextmanager
def watch_training(
    description: str,
    run_dir: Path,
    limits: "Limits",
    *,
    valid: Sequence[Path] | None = None,
    vocab: "WordVocab | None" = None,
    resume: bool = False,
    device: str = "auto",
) -> "Iterator[RunOptions]":
    """Yield the options of a run that a bar shows; if it ends early, say how to resume.

    Args:
        description: Two or three words.
        run_dir: Directory with the checkpoints.
        limits: As for `RunOptions`.
        valid: As for `RunOptions`.
        vocab: As for `RunOptions`.
        resume: As for `RunOptions`.
        device: As for `RunOptions`.
    """
    from elmokit.training.pretraining.start import RunOptions

    with note_what_is_safe(lambda: _what_is_safe(run_dir)), progress_bar(description) as update:
        run_listeners = listeners(description, update)
        yield RunOptions(
            limits=limits,
            valid=valid or [],
            vocab=vocab,
            resume=resume,
            device=device,
            save_on_signals=True,
            on_preparation=run_listeners.on_preparation,
            on_event=run_listeners.on_event,
        )


def _what_is_safe(run_dir: Path) -> str:
    from elmokit.training.checkpoints import latest_checkpoint
    from elmokit.training.pretraining.run_dir import CHECKPOINTS, is_recorded

    checkpoint = latest_checkpoint(run_dir / CHECKPOINTS)
    if checkpoint is not None:
        return f"{checkpoint} is complete; continue from it with the same command and --resume."
    if is_recorded(run_dir):
        return (
            f"There is no checkpoint yet. The same command with --resume trains from the start on "
            f"the prepared text in {run_dir}."
        )
    return f"The text was not yet prepared: the same command starts over in {run_dir}."


def listeners(description: str, update: Callable[..., None]) -> Listeners:
    """Return callbacks that show words prepared, then tokens/s, loss and validation perplexity."""
    validation = ""

    def on_preparation(event: "Preparation") -> None:
        update(
            event.words,
            total=event.total_words,
            status=f"{event.sentences:,} sentences, {event.words:,} words",
            description=event.stage,
        )

    def on_event(event: "TrainingEvent") -> None:
        nonlocal validation
        if event.validation is not None:
            validation = f" · held-out perplexity {event.validation.mean:.1f}"
        report = event.report
        update(
            report.share,
            total=1.0,
            status=f"step {report.progress.step} · {event.tokens_per_second:,.0f} tokens/s · "
            f"loss {report.loss:.3f}{validation}",
            description=description,
        )

    return Listeners(on_preparation, on_event)
