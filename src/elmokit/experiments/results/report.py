"""What an experiment leaves behind: ``results.json``, ``table.md`` and ``plot.png``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.registry import Experiment
from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.tables import Table, settings_table, to_markdown
from elmokit.experiments.runs.provenance import facts_of_making
from elmokit.experiments.runs.store import RunResult
from elmokit.experiments.sources import ModelFacts
from elmokit.files.atomic import atomic_file
from elmokit.weights.locate import PACKAGED_MODELS

RESULTS_FILE, TABLE_FILE, PLOT_FILE = "results.json", "table.md", "plot.png"
SHOWN_HASH = 12


@dataclass(frozen=True)
class Report:
    """What is known of an experiment.

    Args:
        markdown: The page.
        results: The same for machines, JSON-able.
        files: That were written.
        num_missing: Runs without a result.
    """

    markdown: str
    results: dict[str, Any]
    files: tuple[Path, ...]
    num_missing: int


def write_report(
    experiment: Experiment, findings: Findings, facts: Mapping[str, str], output: Path
) -> Report:
    """Write tables and picture; each file appears whole.

    Raises:
        OSError: if there is no room on disk.
    """
    tables = [show(findings) for show in experiment.tables]
    if experiment.probe is None:
        tables.append(settings_table(findings))
    markdown = to_markdown(experiment.title, tables, findings, facts)
    results = {
        "experiment": experiment.name,
        "title": experiment.title,
        "made": dict(facts),
        "tables": [_table(table) for table in tables],
        "comparisons": [vars(one) | {"seeds": list(one.seeds)} for one in findings.comparisons],
        "runs": [_run(run, result) for run, result in findings.finished],
        "missing": [
            {"id": run.id, "run": run.describe(), "reason": reason}
            for run, reason in findings.missing
        ],
    }
    files = [output / RESULTS_FILE, output / TABLE_FILE]
    with atomic_file(files[0]) as temp_path:
        text = json.dumps(results, indent=1, ensure_ascii=False)
        temp_path.write_text(text + "\n", encoding="utf-8")
    with atomic_file(files[1]) as temp_path:
        temp_path.write_text(markdown, encoding="utf-8")
    if experiment.plot is not None and experiment.plot(findings, output / PLOT_FILE):
        files.append(output / PLOT_FILE)
    return Report(markdown, results, tuple(files), len(findings.missing))


def facts_for_people(
    experiment: Experiment, findings: Findings, *, command: str, model: ModelFacts, vectors: Path
) -> dict[str, str]:
    """Return what made the numbers; runs of several machines or versions name all of them."""
    now = facts_of_making()
    made = [result.made for _, result in findings.finished] or [now]
    seeds = sorted({run.seed for run, _ in findings.finished})
    hashes = {run.facts["vectors"] for run, _ in findings.runs if run.facts.get("vectors")}
    return {
        "command": f"`{command}`",
        "written": now["date"],
        "hardware": "; ".join(sorted({one["hardware"] for one in made})),
        "versions": "; ".join(sorted({one["versions"] for one in made})),
        "biLM": f"{_shown(model.path)}, hash {model.hash[:SHOWN_HASH]}",
        "word vectors": f"{vectors}, hash {', '.join(sorted(one[:SHOWN_HASH] for one in hashes))}",
        "seeds": ", ".join(map(str, seeds)) or "none yet",
        "scored": "the dev set, which also chose the epoch, in every condition alike"
        if experiment.probe is None
        else "data that nothing was chosen by",
    }


def _table(table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "header": list(table.header),
        "rows": [list(row) for row in table.rows],
        "notes": list(table.notes),
    }


def _run(run: PlannedRun, result: RunResult) -> dict[str, Any]:
    return {
        "id": run.id, "task": run.task, "dataset": run.dataset, "condition": run.condition,
        "share": run.share, "seed": run.seed, "metric": result.metric, "value": result.value,
        "details": dict(result.details), "examples": result.num_examples,
        "best_epoch": result.best_epoch, "epochs": [dict(one) for one in result.epochs],
        "seconds": round(result.seconds, 1), "wall_seconds": round(result.wall_seconds, 1),
        "layer_weights": [vars(one) for one in result.layer_weights],
        "config": run.facts.get("config"), **result.made,
    }  # fmt: skip


def _shown(path: Path) -> str:
    """Return the name of a model in the package, or a path as it was given."""
    return path.name if path.parent == PACKAGED_MODELS else str(path)
