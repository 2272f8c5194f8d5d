"""Plots of findings: learning curves with error bars, layer weights as a heat map."""

from pathlib import Path
from typing import Any

from elmokit.experiments.results.comparison import Cell
from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.mix_tables import mix_rows
from elmokit.files.pictures import new_figure, write_picture
from elmokit.probes.layer_weights import LayerWeights, MixWeights, plot_layer_weights

INCHES = 4.0
"""Width and height of one panel."""


def plot_curves(findings: Findings, path: Path) -> bool:
    """Plot score over share of labels, a panel per task; return whether there was anything to draw.

    Error bars show the standard deviation over seeds.
    """
    tasks = list(dict.fromkeys((cell.task, cell.dataset) for cell in findings.cells.values()))
    if not tasks:
        return False
    figure = new_figure(len(tasks) * INCHES, INCHES)
    panels = figure.subplots(1, len(tasks), squeeze=False)[0]
    for axes, (task, dataset) in zip(panels, tasks, strict=True):
        curves = [findings.curve(task, dataset, condition) for condition in findings.conditions]
        for condition, cells in zip(findings.conditions, curves, strict=True):
            _draw_curve(axes, condition, cells)
        axes.set_xscale("log")
        shares = sorted({cell.share for cells in curves for cell in cells})
        axes.set_xticks([100 * share for share in shares], [f"{100 * s:g}" for s in shares])
        axes.minorticks_off()
        axes.set_xlabel("labels (%)")
        axes.set_title(f"{task} ({dataset})", fontsize="medium")
        axes.legend()
    write_picture(figure, path)
    return True


def _draw_curve(axes: Any, condition: str, cells: list[Cell]) -> None:
    if not cells:
        return
    axes.errorbar(
        [100 * cell.share for cell in cells],
        [cell.summary.mean for cell in cells],
        yerr=[cell.summary.sd or 0.0 for cell in cells],
        marker="o", capsize=3, label=condition,
    )  # fmt: skip
    axes.set_ylabel(f"dev {cells[0].metric} (%)")


def plot_mixes(findings: Findings, path: Path) -> bool:
    """Plot mean layer weights over seeds; return whether there was anything to draw."""
    tasks: dict[tuple[str, str], list[MixWeights]] = {}
    for row in mix_rows(findings):
        mix = MixWeights(position=row.position, weights=row.means, gamma=row.gamma)
        tasks.setdefault((row.task, row.dataset), []).append(mix)
    if not tasks:
        return False
    columns = [
        LayerWeights(run=dataset, task=task, embeddings="elmo", mixes=tuple(mixes))
        for (task, dataset), mixes in tasks.items()
    ]
    plot_layer_weights(columns, path)
    return True
