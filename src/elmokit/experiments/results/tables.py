"""Tables of scores, gains and settings, for Markdown and JSON."""

from collections import Counter
from dataclasses import dataclass

from elmokit.experiments.results.comparison import (
    Cell,
    Comparison,
    Difference,
    GainChange,
    share_that_reaches,
)
from elmokit.experiments.results.findings import Findings, Row
from elmokit.metrics.bootstrap import CONFIDENCE

NOTHING = "–"
INTERVAL = f"{100 * CONFIDENCE:g} % interval"


@dataclass(frozen=True)
class Table:
    """A table of text cells."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def score_table(findings: Findings) -> Table:
    """Return mean ± standard deviation, with a row per task and share, a column per condition."""
    rows = []
    for row in findings.rows:
        cells = [findings.cells.get((*row, condition)) for condition in findings.conditions]
        first = next((cell for cell in cells if cell is not None), None)
        metric, examples = (
            (first.metric, f"{first.num_examples:,}") if first else (NOTHING, NOTHING)
        )
        planned = [findings.num_planned(row, condition) for condition in findings.conditions]
        rows.append((*_row_head(row), metric, examples, *map(_score, cells, planned)))
    return Table(
        f"Scores on {findings.scored}, in percent: mean ± standard deviation over the seeds",
        ("task", "data", "labels", "metric", "examples", *findings.conditions),
        tuple(rows),
    )


def gain_table(findings: Findings) -> Table:
    """Compare every condition with the reference: gain, error reduction, p, epochs needed."""
    return Table(
        f"Against {findings.reference}, on {findings.scored}",
        (
            "task", "data", "labels", "condition", "gain", INTERVAL, "error reduction",
            "p", "p (Holm)", "seeds", "units", f"epochs to the best of {findings.reference}",
        ),
        tuple(_gain_row(one) for one in findings.comparisons),
        (
            "gain: points; error reduction: gain divided by the reference's error (100 - score); "
            f"{INTERVAL} and p (two-sided): hierarchical bootstrap over seeds and sampling "
            "units (paragraphs in qa, documents in coref, premises in nli, sentences elsewhere), "
            "so they include the variance of training where there are several seeds; p (Holm): "
            "adjusted for all tasks with the same condition and share of the labels; seeds: of the "
            f"condition, and of {findings.reference} if it has others.",
        ),
    )  # fmt: skip


def fewer_labels_table(findings: Findings) -> Table:
    """Compare the gains with fewer labels with those with all of them."""
    return Table(
        f"Gain over {findings.reference} with fewer labels and with all, on {findings.scored}",
        (
            "task", "data", "labels", "condition", "gain", "gain with all labels", "change",
            INTERVAL, "p", "p (Holm)",
        ),
        tuple(_change_row(one) for one in findings.gain_changes),
        ("change: the first gain minus the second; its interval and p as above.",),
    )  # fmt: skip


COMPARED = (score_table, gain_table, fewer_labels_table)


def curve_table(findings: Findings) -> Table:
    """Return the share of labels with which a condition matches the reference with all labels."""
    rows = []
    for task, dataset in dict.fromkeys(row[:2] for row in findings.rows):
        largest = max(row[2] for row in findings.rows if row[:2] == (task, dataset))
        base = findings.cells.get((task, dataset, largest, findings.reference or ""))
        for condition in findings.conditions:
            if base is None or condition == findings.reference:
                continue
            points = findings.curve(task, dataset, condition)
            share = share_that_reaches(
                [(cell.share, cell.summary.mean) for cell in points], base.summary.mean
            )
            reached = NOTHING if share is None else _percent(share)
            rows.append((task, dataset, condition, f"{base.summary.mean:.2f}", reached))
    return Table(
        f"Labels at which a condition is as good as {findings.reference} with all of them",
        ("task", "data", "condition", f"{findings.reference}, all labels", "labels needed"),
        tuple(rows),
        ("Straight lines between the measured shares on a logarithmic axis.",),
    )


def settings_table(findings: Findings) -> Table:
    """Return how the tasks were trained."""
    rows: dict[tuple[str, ...], None] = {}
    rates: dict[tuple[str, str], dict[str, float]] = {}
    for run, _ in findings.runs:
        learning_rate = run.metadata["config"]["train"]["learning_rate"]
        rates.setdefault((run.task, run.dataset), {})[run.condition] = learning_rate
    for run, _ in findings.runs:
        config, data = run.metadata["config"], run.metadata["data"]
        train = config["train"]
        by_condition = rates[run.task, run.dataset]
        rate = f"{by_condition[run.condition]:g}"
        if len(set(by_condition.values())) > 1:
            rate = ", ".join(f"{name} {value:g}" for name, value in by_condition.items())
        row = (
            *_row_head((run.task, run.dataset, run.share)),
            "all" if data["max_train"] is None else f"{data['max_train']:,}",
            _held_out(*data["held_out"]),
            ", ".join(map(str, config["hidden_dims"])), f"{config['dropout']:g}",
            f"{train['epochs']}, patience {train['patience']}", str(train["batch_size"]), rate,
        )  # fmt: skip
        rows[row] = None
    order = [_row_head(row) for row in findings.rows]
    return Table(
        "Settings, the same for all conditions",
        (
            "task", "data", "labels", "training examples at most", "held out", "widths", "dropout",
            "epochs at most", "batch", "learning rate",
        ),
        tuple(sorted(rows, key=lambda row: order.index((row[0], row[1], row[2])))),
        (
            "held out: part of the training set that is not trained on; it chooses "
            + ("learning rate and epoch" if findings.is_tuned else "the epoch")
            + ", and ends the training.",
            last_epochs(findings),
        ),
    )  # fmt: skip


def last_epochs(findings: Findings) -> str:
    """Say how many runs might have become better with more epochs, and of which tasks."""
    by_task = Counter(run.task for run in findings.ended_at_their_best)
    tasks = ", ".join(f"{task} {count}" for task, count in by_task.items())
    return f"The best epoch was the last in {by_task.total()} of {len(findings.finished)} runs" + (
        f" ({tasks})." if tasks else "."
    )


def _held_out(share: float, most: int) -> str:
    return f"{_percent(share)}, at most {most:,}"


def _row_head(row: Row) -> tuple[str, str, str]:
    task, dataset, share = row
    return task, dataset, _percent(share)


def _score(cell: Cell | None, num_planned: int) -> str:
    if cell is None:
        return NOTHING
    summary = cell.summary
    text = spread_text(summary.mean, summary.sd, 2)
    if summary.num_seeds < num_planned:
        text += f" ({summary.num_seeds} of {num_planned} seeds)"
    return text


def _gain_row(one: Comparison) -> tuple[str, ...]:
    needed = NOTHING if one.epochs_to_reference is None else f"{one.epochs_to_reference:.1f}"
    reduction = NOTHING if one.error_reduction is None else f"{one.error_reduction:.1f} %"
    seeds = dict.fromkeys((len(one.seeds), len(one.reference_seeds)))
    return (
        *_row_head((one.task, one.dataset, one.share)), one.condition,
        f"{one.gain:+.2f}", _interval(one), reduction, p_text(one.p_value),
        p_text(one.adjusted_p), " and ".join(map(str, seeds)), f"{one.num_units:,}", needed,
    )  # fmt: skip


def _change_row(one: GainChange) -> tuple[str, ...]:
    return (
        *_row_head((one.task, one.dataset, one.share)), one.condition,
        f"{one.gain:+.2f}", f"{one.whole_gain:+.2f}", f"{one.change:+.2f}", _interval(one),
        p_text(one.p_value), p_text(one.adjusted_p),
    )  # fmt: skip


def _interval(one: Difference) -> str:
    if one.low is None or one.high is None:
        return NOTHING
    return f"{one.low:+.2f} to {one.high:+.2f}"


def spread_text(mean: float, sd: float | None, digits: int) -> str:
    """Format mean ± standard deviation, or the mean alone."""
    return f"{mean:.{digits}f}" + ("" if sd is None else f" ± {sd:.{digits}f}")


def p_text(p_value: float) -> str:
    """Format a p-value."""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
