"""The table of learned layer weights."""

from dataclasses import dataclass

from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.tables import Table, spread_text
from elmokit.metrics.significance import summarize_seeds
from elmokit.probes.layer_weights import POSITIONS
from elmokit.tasks.inputs.settings import MixPosition


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
