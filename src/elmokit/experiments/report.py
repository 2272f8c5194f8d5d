"""The files of an experiment: ``results.json``, ``table.md``, ``counts.npz`` and ``plot.png``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.experiments.comparison import Findings
from elmokit.experiments.definitions import Experiment
from elmokit.experiments.runs import RESULTS_FILE, PlannedRun, RunResult, now
from elmokit.experiments.tables import TABLES, Table, mix_rows
from elmokit.files.atomic import atomic_file
from elmokit.files.json_files import write_json
from elmokit.probes.layer_weights import LayerWeights, MixWeights, plot_layer_weights
from elmokit.training.curves import new_figure, write_picture

TABLE_FILE, PLOT_FILE = "table.md", "plot.png"
COUNTS_FILE = "counts.npz"
"""For each run, by its id, an array (units, k) from which its score and every p follow."""
PANEL_INCHES = 4.0


@dataclass(frozen=True)
class Report:
    markdown: str
    results: dict[str, Any]
    files: tuple[Path, ...]


def write_report(
    experiment: Experiment, findings: Findings, origin: Mapping[str, str], output: Path
) -> Report:
    """Write tables and plot."""
    made, names = _metadata(experiment, findings, origin), experiment.tables
    names = (*names, "settings") if experiment.probe is None else ("probe", *names)
    tables = [TABLES[name](findings) for name in names]
    missing = [
        (run, outcome or "not yet run")
        for run, outcome in findings.runs
        if not isinstance(outcome, RunResult)
    ]
    results = {
        "experiment": experiment.name,
        "title": experiment.title,
        "made": made,
        "tuned": findings.is_tuned,
        "data": {run.dataset: run.metadata.get("data") for run, _ in findings.runs},
        "tables": [vars(table) for table in tables],
        "comparisons": [vars(gain) for gain in findings.comparisons],
        "gain_changes": [vars(gain) for gain in findings.gain_changes],
        "runs": [_run(run, result) for run, result in findings.finished],
        "ended_at_their_best": [run.id for run in findings.ended_at_their_best],
        "missing": [
            {"id": run.id, "run": run.describe(), "reason": reason} for run, reason in missing
        ],
    }
    lines = [f"- {run.describe()}: {reason}" for run, reason in missing]
    markdown = _markdown(experiment.title, tables, lines, len(findings.runs), made)
    paths = [output / RESULTS_FILE, output / TABLE_FILE]
    write_json(paths[0], results)
    with atomic_file(paths[1]) as temp_path:
        temp_path.write_text(markdown, encoding="utf-8")
    if experiment.probe is None and findings.finished:
        paths.append(output / COUNTS_FILE)
        counts: dict[str, Any] = {
            run.id: result.counts_by_unit for run, result in findings.finished
        }
        with atomic_file(paths[-1]) as temp_path, temp_path.open("wb") as file:
            np.savez_compressed(file, **counts)
    if experiment.plot is not None and PLOTS[experiment.plot](findings, output / PLOT_FILE):
        paths.append(output / PLOT_FILE)
    return Report(markdown, results, tuple(paths))


def _metadata(
    experiment: Experiment, findings: Findings, origin: Mapping[str, str]
) -> dict[str, str]:
    scored = "the dev set, once for each run; "
    if experiment.probe is not None:
        scored = "data that nothing was chosen by"
    elif findings.is_tuned:
        scored += "learning rate and epoch were chosen on a part of the training set"
    else:
        scored += "the epoch was chosen on a part of the training set, the learning rate was not "
        scored += "tuned"
    finished = findings.finished
    hardware, versions = (
        "; ".join(sorted({result.made[name] for _, result in finished}))
        for name in ("hardware", "versions")
    )
    seeds = ", ".join(map(str, sorted({run.seed for run, _ in finished})))
    facts = {
        **origin, "written": now(), "hardware": hardware, "versions": versions, "seeds": seeds,
        "scored": scored,
    }  # fmt: skip
    return {name: value or "none yet" for name, value in facts.items()}


def _run(run: PlannedRun, result: RunResult) -> dict[str, Any]:
    return {
        "id": run.id, "task": run.task, "dataset": run.dataset, "condition": run.condition,
        "share": run.share, "seed": run.seed, "metric": result.metric, "value": result.value,
        "details": dict(result.details), "examples": result.num_examples,
        "best_epoch": result.best_epoch, "epochs": result.epochs,
        "seconds": round(result.seconds, 1), "wall_seconds": round(result.wall_seconds, 1),
        "layer_weights": [vars(mix) for mix in result.layer_weights],
        "config": run.metadata.get("config"), **result.made,
    }  # fmt: skip


def _markdown(
    title: str, tables: Sequence[Table], missing: list[str], num_runs: int, made: Mapping[str, str]
) -> str:
    parts = [f"# {title}\n"]
    for table in tables:
        if table.rows:
            parts.append(f"## {table.title}\n\n{_grid(table)}")
            parts += table.notes
    if missing:
        parts.append(f"## Not run: {len(missing)} of {num_runs}\n")
        parts.append("\n".join(missing))
    parts.append("## How it was made\n")
    parts.append("\n".join(f"- {name}: {value}" for name, value in made.items()))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _grid(table: Table) -> str:
    lines = [table.header, ["---"] * len(table.header), *table.rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _plot_curves(findings: Findings, path: Path) -> bool:
    """Plot score over share of labels, a panel per task; tell whether anything was drawn."""
    tasks = list(dict.fromkeys((cell.task, cell.dataset) for cell in findings.cells.values()))
    if not tasks:
        return False
    figure = new_figure(len(tasks) * PANEL_INCHES, PANEL_INCHES)
    panels = figure.subplots(1, len(tasks), squeeze=False)[0]
    for axes, (task, dataset) in zip(panels, tasks, strict=True):
        shares = set()
        for condition in findings.conditions:
            cells = findings.curve(task, dataset, condition)
            if not cells:
                continue
            shares |= {cell.share for cell in cells}
            axes.errorbar(
                [100 * cell.share for cell in cells],
                [cell.summary.mean for cell in cells],
                yerr=[cell.summary.sd or 0.0 for cell in cells],
                marker="o", capsize=3, label=condition,
            )  # fmt: skip
            axes.set_ylabel(f"dev {cells[0].first.metric} (%)")
        axes.set_xscale("log")
        ticks = [100 * share for share in sorted(shares)]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("labels (%)")
        axes.set_title(f"{task} ({dataset})", fontsize="medium")
        axes.legend()
    write_picture(figure, path)
    return True


def _plot_mixes(findings: Findings, path: Path) -> bool:
    tasks: dict[tuple[str, str], list[MixWeights]] = {}
    for position, cell, layers, gamma in mix_rows(findings):
        weights = tuple(layer.mean for layer in layers)
        mix = MixWeights(position=position, weights=weights, gamma=gamma)
        tasks.setdefault((cell.task, cell.dataset), []).append(mix)
    columns = [
        LayerWeights(run=dataset, task=task, embeddings="elmo", mixes=tuple(mixes))
        for (task, dataset), mixes in tasks.items()
    ]
    if columns:
        plot_layer_weights(columns, path)
    return bool(columns)


PLOTS = {"curves": _plot_curves, "mixes": _plot_mixes}
"""Plots of an experiment, by the name in its definition; each returns whether it drew anything."""
