"""Tables of findings, for Markdown and JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elmokit.experiments.results.comparison import Cell, Comparison, share_that_reaches
from elmokit.experiments.results.findings import Findings, Row
from elmokit.metrics.significance import summarize_seeds
from elmokit.probes.layer_weights import POSITIONS
from elmokit.tasks.inputs.settings import MixPosition

NOTHING = "–"
MAX_MISSING_SHOWN = 60


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
        "Scores on the dev set, in percent: mean ± standard deviation over the seeds",
        ("task", "data", "labels", "metric", "examples", *findings.conditions),
        tuple(rows),
    )


def gain_table(findings: Findings) -> Table:
    """Compare every condition with the reference: gain, error reduction, p, epochs needed."""
    return Table(
        f"Against {findings.reference}",
        (
            "task", "data", "labels", "condition", "gain", "error reduction", "p", "seeds",
            f"epochs to the best of {findings.reference}",
        ),
        tuple(_gain_row(one) for one in findings.comparisons),
        (
            "gain: points, mean ± standard deviation over the seeds that both conditions have; "
            "error reduction: gain as a share of what the reference lacks to 100; p: two-sided "
            "approximate randomization over dev examples (coreference: documents), their counts "
            "summed over the seeds.",
        ),
    )  # fmt: skip


COMPARED = (score_table, gain_table)


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


@dataclass(frozen=True)
class MixRow:
    """Layer weights of a task at one position, averaged over seeds."""

    task: str
    dataset: str
    position: MixPosition
    means: tuple[float, ...]
    sds: tuple[float | None, ...]
    gamma: float
    num_seeds: int


def mix_rows(findings: Findings) -> list[MixRow]:
    """Return the learned layer weights by position, then by task."""
    rows = []
    for position in POSITIONS:
        for cell in findings.cells.values():
            found = [
                one
                for result in cell.results.values()
                for one in result.layer_weights
                if one.position == position
            ]
            if not found:
                continue
            by_layer = zip(*(one.weights for one in found), strict=True)
            layers = [summarize_seeds(list(values)) for values in by_layer]
            rows.append(MixRow(
                cell.task, cell.dataset, position,
                tuple(layer.mean for layer in layers), tuple(layer.sd for layer in layers),
                summarize_seeds([one.gamma for one in found]).mean, len(found),
            ))  # fmt: skip
    return rows


def mix_table(findings: Findings) -> Table:
    """Return the softmax-normalized layer weights of each task."""
    rows = mix_rows(findings)
    num_layers = max((len(row.means) for row in rows), default=0)
    return Table(
        "Layer weights after the softmax (layer 0: tokens): mean ± standard deviation",
        ("position", "task", "data", *(f"layer {n}" for n in range(num_layers)), "γ", "seeds"),
        tuple(
            (
                row.position, row.task, row.dataset,
                *(spread_text(m, sd, 3) for m, sd in zip(row.means, row.sds, strict=True)),
                f"{row.gamma:.2f}", str(row.num_seeds),
            )
            for row in rows
        ),
    )  # fmt: skip


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
            f"{_limit(data['max_train'])} / {_limit(data['max_dev'])}",
            ", ".join(map(str, config["hidden_dims"])), f"{config['dropout']:g}",
            f"{train['epochs']}, patience {train['patience']}", str(train["batch_size"]), rate,
        )  # fmt: skip
        rows[row] = None
    order = [_row_head(row) for row in findings.rows]
    return Table(
        "Settings, the same for all conditions",
        (
            "task", "data", "labels", "at most of train / dev", "widths", "dropout",
            "epochs at most", "batch", "learning rate",
        ),
        tuple(sorted(rows, key=lambda row: order.index((row[0], row[1], row[2])))),
    )  # fmt: skip


def _limit(limit: int | None) -> str:
    return "all" if limit is None else f"{limit:,}"


def to_markdown(
    title: str, tables: Sequence[Table], findings: Findings, metadata: Mapping[str, Any]
) -> str:
    """Return a page with the tables, the missing runs and the metadata."""
    parts = [f"# {title}\n"]
    for table in tables:
        if not table.rows:
            continue
        parts.append(f"## {table.title}\n\n{_grid(table.header, table.rows)}")
        parts += table.notes
    if findings.missing:
        shown = findings.missing[:MAX_MISSING_SHOWN]
        lines = [f"- {run.describe()}: {reason}" for run, reason in shown]
        if len(shown) < len(findings.missing):
            lines.append(f"- and {len(findings.missing) - len(shown)} more")
        parts.append(f"## Not run: {len(findings.missing)} of {len(findings.runs)}\n")
        parts.append("\n".join(lines))
    parts.append("## How it was made\n")
    parts.append("\n".join(f"- {name}: {value}" for name, value in metadata.items()))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


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
    return (
        *_row_head((one.task, one.dataset, one.share)),
        one.condition,
        f"{one.gain:+.2f}" + ("" if one.gain_sd is None else f" ± {one.gain_sd:.2f}"),
        reduction, p_text(one.p_value),
        str(len(one.seeds)), needed,
    )  # fmt: skip


def spread_text(mean: float, sd: float | None, digits: int) -> str:
    """Format mean ± standard deviation, or the mean alone."""
    return f"{mean:.{digits}f}" + ("" if sd is None else f" ± {sd:.{digits}f}")


def p_text(p_value: float) -> str:
    """Format a p-value."""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
