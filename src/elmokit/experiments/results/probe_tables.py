"""Tables of a probe: scores per representation, and example neighbors."""

from dataclasses import dataclass

import numpy as np

from elmokit.experiments.probe_plan import RANDOM, ProbeSettings
from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.tables import NOTHING, Table, p_text, spread_text
from elmokit.metrics.significance import approximate_randomization, summarize_seeds

NUM_ROUNDS = 10_000


@dataclass(frozen=True)
class _Representation:
    """Scores and counts of one representation per seed (several for untrained biLMs)."""

    name: str
    scores: list[dict[str, float]]
    counts: list[np.ndarray]


def probe_table(findings: Findings, settings: ProbeSettings) -> Table:
    """Return the scores of baselines, layers, static vectors and untrained layers."""
    probe = settings.probe
    rows = _representations(findings)
    reference = next((row for row in rows if row.name == settings.reference), None)
    lines = []
    for row in rows:
        cells = []
        for column in probe.columns:
            values = [score[column] for score in row.scores]
            summary = summarize_seeds([float(value) for value in values])
            whole = all(isinstance(value, int) for value in values)
            cells.append(spread_text(summary.mean, summary.sd, 0 if whole else 2))
        p_value = NOTHING
        if reference is not None and row is not reference:
            a, b = (_pool(one.counts, len(row.counts)) for one in (row, reference))
            test = approximate_randomization(a, b, probe.score, num_rounds=NUM_ROUNDS, seed=0)
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


def example_table(findings: Findings) -> Table:
    """Return the neighbors of a word and of two of its occurrences."""
    lines = tuple(
        (one["source"], one["query"], "; ".join(one["nearest"]))
        for _, result in findings.finished for one in result.details.get("examples", ())
    )  # fmt: skip
    return Table("Nearest neighbors", ("by", "of", "nearest first"), lines)


def _representations(findings: Findings) -> list[_Representation]:
    """Return the baselines, which every family measures, then the families in plan order."""
    found: dict[str, _Representation] = {}
    for run, result in findings.finished:
        for number, score in enumerate(result.details.get("scores", ())):
            name = score["name"]
            row = found.setdefault(name, _Representation(name, [], []))
            if not row.scores or (run.condition == RANDOM and name.startswith("random")):
                row.scores.append({key: value for key, value in score.items() if key != "name"})
                row.counts.append(result.counts[number])
    return list(found.values())


def _pool(counts: list[np.ndarray], times: int) -> np.ndarray:
    """Return the sum over seeds; for a single seed, its counts multiplied by ``times``."""
    return np.sum(counts, axis=0) if len(counts) == times else counts[0] * times
