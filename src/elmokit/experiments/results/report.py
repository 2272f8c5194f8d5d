"""The files of an experiment: ``results.json``, ``table.md`` and ``plot.png``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.experiments.experiment import Experiment
from elmokit.experiments.inputs import BiLMMetadata
from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.probe_tables import probe_table
from elmokit.experiments.results.tables import settings_table, to_markdown
from elmokit.experiments.runs.provenance import provenance
from elmokit.experiments.runs.store import RunResult
from elmokit.files.atomic import atomic_file
from elmokit.files.json_files import write_json
from elmokit.weights.locate import PACKAGED_MODELS

RESULTS_FILE, TABLE_FILE, PLOT_FILE = "results.json", "table.md", "plot.png"
SHOWN_HASH = 12


@dataclass(frozen=True)
class Report:
    """The results of an experiment so far."""

    markdown: str
    results: dict[str, Any]
    """The same as JSON-serializable data."""
    files: tuple[Path, ...]


def write_report(
    experiment: Experiment, findings: Findings, metadata: Mapping[str, str], output: Path
) -> Report:
    """Write tables and plot, each file completely or not at all."""
    tables = [show(findings) for show in experiment.tables]
    if experiment.probe is None:
        tables.append(settings_table(findings))
    else:
        tables.insert(0, probe_table(findings, experiment.probe))
    markdown = to_markdown(experiment.title, tables, findings, metadata)
    results = {
        "experiment": experiment.name,
        "title": experiment.title,
        "made": dict(metadata),
        "tables": [vars(table) for table in tables],
        "comparisons": [vars(one) | {"seeds": list(one.seeds)} for one in findings.comparisons],
        "runs": [_run(run, result) for run, result in findings.finished],
        "missing": [
            {"id": run.id, "run": run.describe(), "reason": reason}
            for run, reason in findings.missing
        ],
    }
    files = [output / RESULTS_FILE, output / TABLE_FILE]
    write_json(files[0], results)
    with atomic_file(files[1]) as temp_path:
        temp_path.write_text(markdown, encoding="utf-8")
    if experiment.plot is not None and experiment.plot(findings, output / PLOT_FILE):
        files.append(output / PLOT_FILE)
    return Report(markdown, results, tuple(files))


def metadata_of(
    experiment: Experiment, findings: Findings, *, command: str, model: BiLMMetadata, vectors: Path
) -> dict[str, str]:
    """Return how the numbers were produced: command, models, all machines and versions."""
    now = provenance()
    made = [result.made for _, result in findings.finished] or [now]
    seeds = sorted({run.seed for run, _ in findings.finished})
    hashes = {run.metadata["vectors"] for run, _ in findings.runs if run.metadata.get("vectors")}
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


def _run(run: PlannedRun, result: RunResult) -> dict[str, Any]:
    return {
        "id": run.id, "task": run.task, "dataset": run.dataset, "condition": run.condition,
        "share": run.share, "seed": run.seed, "metric": result.metric, "value": result.value,
        "details": dict(result.details), "examples": result.num_examples,
        "best_epoch": result.best_epoch, "epochs": [dict(one) for one in result.epochs],
        "seconds": round(result.seconds, 1), "wall_seconds": round(result.wall_seconds, 1),
        "layer_weights": [vars(one) for one in result.layer_weights],
        "config": run.metadata.get("config"), **result.made,
    }  # fmt: skip


def _shown(path: Path) -> str:
    """Return the name of a packaged model, or the path of another."""
    return path.name if path.parent == PACKAGED_MODELS else str(path)
