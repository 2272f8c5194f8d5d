"""Tables of a probe: scores per representation, gains by training, ties, example neighbors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elmokit.experiments.probe_plan import RANDOM, ProbeSettings
from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.tables import NOTHING, Table, p_text, spread_text
from elmokit.metrics.bootstrap import CONFIDENCE
from elmokit.metrics.significance import approximate_randomization, summarize_seeds
from elmokit.probes.gains import training_gains
from elmokit.probes.probe import Probe
from elmokit.probes.sense_scores import TIE_TOLERANCE
from elmokit.probes.vector_sources import UNTRAINED


@dataclass(frozen=True)
class _Representation:
    """Scores and counts of one representation per seed (several for untrained biLMs)."""

    name: str
    scores: list[dict[str, Any]]
    counts: list[np.ndarray]


def probe_table(findings: Findings, settings: ProbeSettings) -> Table:
    """Return the scores of baselines, layers, static vectors and untrained layers."""
    probe = settings.probe
    main = probe.figures[0]
    rows = _representations(findings)
    reference = next((row for row in rows if row.name == settings.reference), None)
    lines = []
    for row in rows:
        cells = [_cell([score[column] for score in row.scores]) for column in probe.columns]
        p_value = NOTHING
        if reference is not None and row is not reference:
            a, b = (main.counts(_pool(one.counts, len(row.counts))) for one in (row, reference))
            test = approximate_randomization(a, b, main.score, seed=0)
            p_value = p_text(test.p_value)
        lines.append((row.name, *cells, p_value, str(len(row.scores))))
    return Table(
        f"{settings.data.name}: each representation alone",
        ("representation", *probe.columns.values(), f"p against {settings.reference}", "seeds"),
        tuple(lines),
        (
            "p: two-sided approximate randomization over sentences (neighbors: lemmas) on the "
            "first of these numbers, counts summed over seeds. Seeds are those of untrained biLMs; "
            "nothing else here is drawn.",
        ),
    )


def training_gain_table(findings: Findings, *, probe: Probe) -> Table:
    """Return what training added to each layer, with a confidence interval."""
    counts = {row.name: row.counts for row in _representations(findings)}
    lines: dict[str, list[str]] = {}
    for gain in training_gains(probe, counts):
        lines.setdefault(gain.name, []).append(f"{gain.difference:+.2f} {gain.interval}")
    titles = [probe.columns[figure.name] for figure in probe.figures]
    return Table(
        "Trained minus untrained biLM",
        ("layer", *titles),
        tuple((name, *cells) for name, cells in lines.items()),
        (
            f"points, with {CONFIDENCE:.0%} confidence intervals by bootstrap over the units that "
            "are scored (sentences of a test set, documents of SemCor, lemmas) and the seeds of "
            "untrained biLMs; the trained biLM is this one, whatever another training would give.",
        ),
    )


def tie_table(findings: Findings, *, probe: Probe) -> Table:
    """Return how many decisions were ties, and the chosen weight of the prior."""
    lines = []
    for row in _representations(findings):
        ties = [[score["num_ties"].get(one.name) for score in row.scores] for one in probe.figures]
        weights = [score["prior_weight"] for score in row.scores]
        shown = NOTHING if None in weights else ", ".join(f"{weight:g}" for weight in weights)
        lines.append((row.name, *map(_cell, ties), shown))
    titles = [probe.columns[figure.name] for figure in probe.figures]
    return Table(
        "Ties",
        ("representation", *titles, "weight of the prior"),
        tuple(lines),
        (
            f"words of which several senses are equally good, within {TIE_TOLERANCE:g}; the one "
            "that the inventory lists first is taken. The weight is that of the test set, chosen "
            "on SemCor, for each seed.",
        ),
    )


def example_table(findings: Findings) -> Table:
    """Return the neighbors of a word and of occurrences in different senses."""
    details = [result.details for _, result in findings.finished]
    examples = [one for found in details for one in found.get("examples", ())]
    glosses = {key: gloss for found in details for key, gloss in found.get("glosses", {}).items()}
    return Table(
        "Nearest neighbors",
        ("by", "of", "nearest first"),
        tuple((one["source"], one["query"], "; ".join(one["nearest"])) for one in examples),
        tuple(f"{key}: {gloss}" for key, gloss in glosses.items()),
    )


def _cell(values: Sequence[float | None]) -> str:
    """Format a number of each seed: mean and deviation, without decimals if all are whole."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return NOTHING
    summary = summarize_seeds([float(value) for value in numbers])
    is_whole = all(isinstance(value, int) for value in numbers)
    return spread_text(summary.mean, summary.sd, 0 if is_whole else 2)


def _representations(findings: Findings) -> list[_Representation]:
    """Return the baselines, which every family measures, then the families in plan order."""
    found: dict[str, _Representation] = {}
    for run, result in findings.finished:
        for number, score in enumerate(result.details.get("scores", ())):
            name = score["name"]
            row = found.setdefault(name, _Representation(name, [], []))
            if not row.scores or (run.condition == RANDOM and name.startswith(UNTRAINED)):
                row.scores.append({key: value for key, value in score.items() if key != "name"})
                row.counts.append(result.counts[number])
    return list(found.values())


def _pool(counts: list[np.ndarray], times: int) -> np.ndarray:
    """Return the sum over seeds; for a single seed, its counts multiplied by ``times``."""
    return np.sum(counts, axis=0) if len(counts) == times else counts[0] * times
