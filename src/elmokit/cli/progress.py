"""How a training run looks on stderr: a bar for preparation and training, words at an early end."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from elmokit.cli.output import Progress, progress_bar, say_what_is_safe

if TYPE_CHECKING:
    from elmokit.corpus.text_shards import Preparation
    from elmokit.training.pretraining.run import TrainingEvent


@dataclass(frozen=True)
class Listeners:
    """What a run calls, see `RunOptions`."""

    on_preparation: "Callable[[Preparation], None]"
    on_event: "Callable[[TrainingEvent], None]"


@contextmanager
def watch_training(description: str, run_dir: Path) -> Iterator[Listeners]:
    """Show a run in a bar; after Ctrl-C, or on a full disk, say how to go on.

    Args:
        description: What is being done, two or three words.
        run_dir: Where the checkpoints are.
    """
    with say_what_is_safe(lambda: _what_is_safe(run_dir)), progress_bar(description) as update:
        yield listeners(description, update)


def _what_is_safe(run_dir: Path) -> str:
    from elmokit.training.checkpoints import latest_checkpoint
    from elmokit.training.pretraining.run_dir import CHECKPOINTS, is_recorded

    checkpoint = latest_checkpoint(run_dir / CHECKPOINTS)
    if checkpoint is not None:
        return f"{checkpoint} is whole; go on after it with the same command and --resume."
    if is_recorded(run_dir):
        return (
            f"There is no checkpoint yet. The same command with --resume trains from the beginning "
            f"on the text that is prepared in {run_dir}."
        )
    return f"The text was not yet prepared: the same command begins anew in {run_dir}."


def listeners(description: str, update: Progress) -> Listeners:
    """Return what shows the words prepared, then tokens/s, loss and validation beside the bar."""
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
