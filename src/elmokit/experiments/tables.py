"""Tables of scores, gains, settings, layer weights and probes, for Markdown and JSON."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elmokit.experiments.comparison import Cell, Difference, Findings, share_that_reaches
from elmokit.experiments.definitions import RANDOM
from elmokit.metrics.bootstrap import (
    CONFIDENCE,
    SeedSummary,
    approximate_randomization,
    summarize_seeds,
)
from elmokit.probes.inputs import UNTRAINED
from elmokit.probes.layer_weights import POSITIONS
from elmokit.probes.probe import training_gains
from elmokit.tasks.inputs.settings import MixPosition

NOTHING = "–"
INTERVAL = f"{100 * CONFIDENCE:g} % interval"


@dataclass(frozen=True)
class Table:
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


# --- conditions of task models


def score_table(findings: Findings) -> Table:
    rows = []
    for row in findings.rows:
        cells = {name: findings.cells.get((*row, name)) for name in findings.conditions}
        first = next((cell.first for cell in cells.values() if cell is not None), None)
        facts = (first.metric, f"{first.num_examples:,}") if first else (NOTHING, NOTHING)
        scores = [_score(cell, findings.num_planned[row, name]) for name, cell in cells.items()]
        rows.append((*_head(*row), *facts, *scores))
    return Table(
        "Scores on the dev set, in percent: mean ± standard deviation over the seeds",
        ("task", "data", "labels", "metric", "examples", *findings.conditions),
        tuple(rows),
    )


def _score(cell: Cell | None, num_planned: int) -> str:
    if cell is None:
        return NOTHING
    num_seeds = len(cell.results)
    missing = f" ({num_seeds} of {num_planned} seeds)" if num_seeds < num_planned else ""
    return _spread(cell.summary, 2) + missing


def gain_table(findings: Findings) -> Table:
    return Table(
        f"Against {findings.reference}, on the dev set",
        (
            "task", "data", "labels", "condition", "gain", INTERVAL, "error reduction",
            "p", "p (Holm)", "seeds", "units", f"epochs to the best of {findings.reference}",
        ),
        tuple(map(_gain_row, findings.comparisons)),
        (
            "gain: points; error reduction: gain divided by the reference's error (100 - score); "
            f"{INTERVAL} and p (two-sided): hierarchical bootstrap over seeds and sampling "
            "units (paragraphs in qa, documents in coref, premises in nli, sentences elsewhere), "
            "so they include the variance of training where there are several seeds; p (Holm): "
            "adjusted for all tasks with the same condition and share of the labels; seeds: of the "
            f"condition, and of {findings.reference} if it has others.",
        ),
    )  # fmt: skip


def _gain_row(gain: Difference) -> tuple[str, ...]:
    epochs, reduction = gain.epochs_to_reference, gain.error_reduction
    seeds = dict.fromkeys((len(gain.seeds), len(gain.reference_seeds)))
    return (
        *_head(gain.task, gain.dataset, gain.share), gain.condition, f"{gain.gain:+.2f}",
        _interval(gain), NOTHING if reduction is None else f"{reduction:.1f} %",
        _p_text(gain.p_value), _p_text(gain.adjusted_p),
        " and ".join(map(str, seeds)), f"{gain.num_units:,}",
        NOTHING if epochs is None else f"{epochs:.1f}",
    )  # fmt: skip


def fewer_labels_table(findings: Findings) -> Table:
    return Table(
        f"Gain over {findings.reference} with fewer labels and with all, on the dev set",
        (
            "task", "data", "labels", "condition", "gain", "gain with all labels", "change",
            INTERVAL, "p", "p (Holm)",
        ),
        tuple(
            (
                *_head(gain.task, gain.dataset, gain.share), gain.condition,
                f"{gain.gain:+.2f}", f"{gain.whole_gain:+.2f}", f"{gain.change:+.2f}",
                _interval(gain), _p_text(gain.p_value), _p_text(gain.adjusted_p),
            )
            for gain in findings.gain_changes
        ),
        ("change: the first gain minus the second; its interval and p as above.",),
    )  # fmt: skip


def curve_table(findings: Findings) -> Table:
    """Return the share of labels with which a condition matches the reference with all labels."""
    rows = []
    for task, dataset in dict.fromkeys(row[:2] for row in findings.rows):
        largest = max(row[2] for row in findings.rows if row[:2] == (task, dataset))
        base = findings.cells.get((task, dataset, largest, findings.reference or ""))
        if base is None:
            continue
        target = base.summary.mean
        for condition in findings.conditions:
            if condition == findings.reference:
                continue
            cells = findings.curve(task, dataset, condition)
            points = [(cell.share, cell.summary.mean) for cell in cells]
            share = share_that_reaches(points, target) if points else None
            reached = NOTHING if share is None else _percent(share)
            rows.append((task, dataset, condition, f"{target:.2f}", reached))
    return Table(
        f"Labels at which a condition is as good as {findings.reference} with all of them",
        ("task", "data", "condition", f"{findings.reference}, all labels", "labels needed"),
        tuple(rows),
        ("Straight lines between the measured shares on a logarithmic axis.",),
    )


def settings_table(findings: Findings) -> Table:
    rows = []
    for row in findings.rows:
        runs = [run for run, _ in findings.runs if (run.task, run.dataset, run.share) == row]
        config, data = runs[0].metadata["config"], runs[0].metadata["data"]
        train, (share, most) = config["train"], data["held_out"]
        rates = {run.condition: f"{run.learning_rate:g}" for run in runs}
        rate = ", ".join(f"{name} {value}" for name, value in rates.items())
        rows.append((
            *_head(*row),
            "all" if data["max_train"] is None else f"{data['max_train']:,}",
            f"{_percent(share)}, at most {most:,}",
            ", ".join(map(str, config["hidden_dims"])), f"{config['dropout']:g}",
            f"{train['epochs']}, patience {train['patience']}", str(train["batch_size"]),
            rate if len(set(rates.values())) > 1 else next(iter(rates.values())),
        ))  # fmt: skip
    chosen_by = "learning rate and epoch" if findings.is_tuned else "the epoch"
    by_task = Counter(run.task for run in findings.ended_at_their_best)
    last_in = ", ".join(f"{task} {count}" for task, count in by_task.items())
    return Table(
        "Settings, the same for all conditions",
        (
            "task", "data", "labels", "training examples at most", "held out", "widths", "dropout",
            "epochs at most", "batch", "learning rate",
        ),
        tuple(rows),
        (
            "held out: part of the training set that is not trained on; it chooses "
            f"{chosen_by}, and ends the training.",
            # more epochs might have made these better
            f"The best epoch was the last in {by_task.total()} of {len(findings.finished)} runs"
            + (f" ({last_in})." if last_in else "."),
        ),
    )  # fmt: skip


# --- layer weights


def mix_rows(
    findings: Findings,
) -> Iterator[tuple[MixPosition, Cell, tuple[SeedSummary, ...], float]]:
    """Yield the layer weights and γ that a task learned, over its seeds, position by position."""
    for position in POSITIONS:
        for cell in findings.cells.values():
            mixes = [mix for result in cell.results.values() for mix in result.layer_weights]
            mixes = [mix for mix in mixes if mix.position == position]
            if mixes:
                by_layer = zip(*(mix.weights for mix in mixes), strict=True)
                layers = tuple(summarize_seeds(list(weights)) for weights in by_layer)
                yield position, cell, layers, summarize_seeds([mix.gamma for mix in mixes]).mean


def mix_table(findings: Findings) -> Table:
    rows = list(mix_rows(findings))
    num_layers = max((len(layers) for _, _, layers, _ in rows), default=0)
    return Table(
        "Layer weights after the softmax (layer 0: tokens): mean ± standard deviation",
        ("position", "task", "data", *(f"layer {n}" for n in range(num_layers)), "γ", "seeds"),
        tuple(
            (
                position, cell.task, cell.dataset, *(_spread(layer, 3) for layer in layers),
                f"{gamma:.2f}", str(layers[0].num_seeds),
            )
            for position, cell, layers, gamma in rows
        ),
    )  # fmt: skip


# --- probes


def probe_table(findings: Findings) -> Table:
    settings = findings.probe
    assert settings is not None
    probe = settings.probe
    main = probe.figures[0]
    scores, counts = _representations(findings)
    reference = counts.get(settings.reference)
    lines = []
    for name, own in scores.items():
        cells = [_cell([score[column] for score in own]) for column in probe.columns]
        p_value = NOTHING
        if reference is not None and name != settings.reference:
            a, b = (main.counts(_pool(side, len(own))) for side in (counts[name], reference))
            p_value = _p_text(approximate_randomization(a, b, main.score, seed=0).p_value)
        lines.append((name, *cells, p_value, str(len(own))))
    return Table(
        f"{settings.dataset}: each representation alone",
        ("representation", *probe.columns.values(), f"p against {settings.reference}", "seeds"),
        tuple(lines),
        (
            "p: two-sided approximate randomization over sentences (neighbors: lemmas) on the "
            "first of these numbers, counts summed over seeds. Seeds are those of untrained biLMs; "
            "nothing else here is drawn.",
        ),
    )


def training_gain_table(findings: Findings) -> Table:
    """Return what training added to each layer."""
    assert findings.probe is not None
    probe = findings.probe.probe
    _, counts = _representations(findings)
    lines: dict[str, list[str]] = {}
    for gain in training_gains(probe, counts):
        lines.setdefault(gain.name, []).append(f"{gain.difference:+.2f} {gain.interval}")
    return Table(
        "Trained minus untrained biLM",
        ("layer", *(probe.columns[figure.name] for figure in probe.figures)),
        tuple((name, *cells) for name, cells in lines.items()),
        (
            f"points, with {CONFIDENCE:.0%} confidence intervals by bootstrap over the units that "
            "are scored (sentences of a test set, documents of SemCor, lemmas) and the seeds of "
            "untrained biLMs; the trained biLM is this one, whatever another training would give.",
        ),
    )


def example_table(findings: Findings) -> Table:
    details = [result.details for _, result in findings.finished]
    examples = [example for table in details for example in table.get("examples", ())]
    glosses = {key: text for table in details for key, text in table.get("glosses", {}).items()}
    return Table(
        "Nearest neighbors",
        ("by", "of", "nearest first"),
        tuple((row["source"], row["query"], "; ".join(row["nearest"])) for row in examples),
        tuple(f"{key}: {gloss}" for key, gloss in glosses.items()),
    )


TABLES: Mapping[str, Callable[[Findings], Table]] = {
    "scores": score_table, "gains": gain_table, "fewer_labels": fewer_labels_table,
    "curves": curve_table, "mixes": mix_table, "examples": example_table,
    "settings": settings_table, "probe": probe_table, "training_gains": training_gain_table,
}  # fmt: skip
"""Tables of an experiment, by the names in its definition; all of tasks have ``settings``, all of
a probe ``probe``."""


def _representations(
    findings: Findings,
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, list[np.ndarray]]]:
    """Return scores and counts of each representation, one per seed of untrained biLMs."""
    scores: dict[str, list[dict[str, Any]]] = {}
    counts: dict[str, list[np.ndarray]] = {}
    for run, result in findings.finished:
        for number, score in enumerate(result.details.get("scores", ())):
            name = score["name"]
            # baselines come with every family: the first is as good as the others
            if name not in scores or (run.condition == RANDOM and name.startswith(UNTRAINED)):
                scores.setdefault(name, []).append(score)
                own = np.array(result.counts[number], dtype=np.float64)
                counts.setdefault(name, []).append(own)
    return scores, counts


def _pool(counts: list[np.ndarray], times: int) -> np.ndarray:
    """Return the sum over seeds; for a single seed, its counts multiplied by ``times``."""
    return np.sum(counts, axis=0) if len(counts) == times else counts[0] * times


def _cell(values: Sequence[float | None]) -> str:
    """Format a number of each seed: mean and deviation, without decimals if all are whole."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return NOTHING
    is_whole = all(isinstance(value, int) for value in numbers)
    return _spread(summarize_seeds([float(value) for value in numbers]), 0 if is_whole else 2)


def _head(task: str, dataset: str, share: float) -> tuple[str, str, str]:
    return task, dataset, _percent(share)


def _interval(gain: Difference) -> str:
    return NOTHING if gain.low is None else f"{gain.low:+.2f} to {gain.high:+.2f}"


def _spread(summary: SeedSummary, digits: int) -> str:
    sd = "" if summary.sd is None else f" ± {summary.sd:.{digits}f}"
    return f"{summary.mean:.{digits}f}{sd}"


def _p_text(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
