"""The files of an experiment: ``results.json``, ``table.md`` and ``plot.png``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elmokit.experiments.experiment import Experiment
from elmokit.experiments.inputs import BiLMMetadata
from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.markdown import to_markdown
from elmokit.experiments.results.probe_tables import probe_table
from elmokit.experiments.results.tables import COMPARED, Table, settings_table
from elmokit.experiments.runs.provenance import now, provenance
from elmokit.experiments.runs.store import RunResult
from elmokit.experiments.scored_files import HashedFile
from elmokit.files.atomic import atomic_file
from elmokit.files.json_files import write_json
from elmokit.weights.locate import PACKAGED_MODELS

REPORT_FILES = RESULTS_FILE, TABLE_FILE, PLOT_FILE = "results.json", "table.md", "plot.png"
SHOWN_HASH = 12
RATES_KEY = "learning rates"
"""Of what a report says of how it was made, where rates are those of an earlier command."""


@dataclass(frozen=True)
class Report:
    """The results of an experiment so far."""

    markdown: str
    results: dict[str, Any]
    """The same as JSON-serializable data."""
    files: tuple[Path, ...]


def write_report(
    experiment: Experiment,
    findings: Findings,
    metadata: Mapping[str, str],
    output: Path,
    *,
    on_test: Findings | None,
    test_files: Mapping[str, HashedFile],
) -> Report:
    """Write tables and plot, each file completely or not at all.

    ``on_test`` has the same runs with their scores on ``test_files``, which are by data set.
    """
    tables = [show(findings) for show in experiment.tables]
    if experiment.probe is None:
        tables.append(settings_table(findings))
    else:
        tables.insert(0, probe_table(findings, experiment.probe))
    if on_test is not None:
        tables += _test_tables(experiment, on_test)
    markdown = to_markdown(experiment.title, tables, findings, metadata)
    options = options_of(experiment, findings, metadata, test_files)
    results = {
        **options,
        "tables": [vars(table) for table in tables],
        **_comparisons(findings),
        "runs": [_run(run, result) for run, result in findings.finished],
        "ended_at_their_best": [run.id for run in findings.ended_at_their_best],
        "missing": [
            {"id": run.id, "run": run.describe(), "reason": reason}
            for run, reason in findings.missing
        ],
    }
    if on_test is not None:
        scores = [{"id": run.id, **_score(result)} for run, result in on_test.finished]
        results["test"] = options["test"] | _comparisons(on_test) | {"runs": scores}
    files = [output / RESULTS_FILE, output / TABLE_FILE]
    write_json(files[0], results)
    with atomic_file(files[1]) as temp_path:
        temp_path.write_text(markdown, encoding="utf-8")
    if experiment.plot is not None and experiment.plot(findings, output / PLOT_FILE):
        files.append(output / PLOT_FILE)
    return Report(markdown, results, tuple(files))


def options_of(
    experiment: Experiment,
    findings: Findings,
    metadata: Mapping[str, str],
    test_files: Mapping[str, HashedFile],
) -> dict[str, Any]:
    """Return what a results file says of the options that decide the results."""
    options = {
        "experiment": experiment.name,
        "title": experiment.title,
        "made": dict(metadata),
        "tuned": findings.is_tuned,
        "data": {run.dataset: run.metadata.get("data") for run, _ in findings.runs},
    }
    if test_files:
        options["test"] = {"files": {
            dataset: {"path": str(file.path), "sha256": file.sha256}
            for dataset, file in test_files.items()
        }}  # fmt: skip
    return options


def _test_tables(experiment: Experiment, on_test: Findings) -> list[Table]:
    """Return the tables of scores and gains on the test files, and say what was not scored."""
    tables = [show(on_test) for show in experiment.tables if show in COMPARED]
    lost = [run.describe() for run, _ in on_test.missing if run.id in on_test.reasons]
    if lost:
        reason = next(iter(on_test.reasons.values()))
        note = f"Not scored, {reason}: {'; '.join(lost)}."
        tables[0] = replace(tables[0], notes=(*tables[0].notes, note))
    return tables


def _comparisons(findings: Findings) -> dict[str, Any]:
    return {
        "comparisons": [vars(one) for one in findings.comparisons],
        "gain_changes": [vars(one) | {"change": one.change} for one in findings.gain_changes],
    }


def metadata_of(
    experiment: Experiment,
    findings: Findings,
    *,
    command: str,
    model: BiLMMetadata,
    vectors: Path,
    rates: Path | None,
    test_files: Mapping[str, HashedFile],
) -> dict[str, str]:
    """Return how the numbers were produced: command, models, all machines and versions."""
    hashes = {run.metadata["vectors"] for run, _ in findings.runs if run.metadata.get("vectors")}
    metadata = {
        "command": f"`{command}`",
        "written": now(),
        **made_with(findings),
        "biLM": f"{_shown(model.path)}, hash {model.hash[:SHOWN_HASH]}",
        "word vectors": f"{vectors}, hash {', '.join(sorted(one[:SHOWN_HASH] for one in hashes))}",
    }
    if experiment.probe is not None:
        return metadata | {"scored": "data that nothing was chosen by"}
    if rates is not None:
        metadata[RATES_KEY] = f"tuned by an earlier command, from {rates}"
    if test_files:
        metadata["test files"] = "; ".join(
            f"{dataset}: {file.path}, SHA-256 {file.sha256}" for dataset, file in test_files.items()
        )
    return metadata | {"scored": what_is_scored(findings)}


def what_is_scored(findings: Findings) -> str:
    """Return what task models are scored on, and what was chosen on other data."""
    chosen = (
        "learning rate and epoch were chosen on a part of the training set"
        if findings.is_tuned
        else "the epoch was chosen on a part of the training set, the learning rate was not tuned"
    )
    return f"the dev set, once for each run; {chosen}"


def made_with(findings: Findings) -> dict[str, str]:
    """Return the machines, versions and seeds of the finished runs."""
    made = [result.made for _, result in findings.finished] or [provenance("cpu")]
    seeds = sorted({run.seed for run, _ in findings.finished})
    return {
        "hardware": "; ".join(sorted({one["hardware"] for one in made})),
        "versions": "; ".join(sorted({one["versions"] for one in made})),
        "seeds": ", ".join(map(str, seeds)) or "none yet",
    }


def _run(run: PlannedRun, result: RunResult) -> dict[str, Any]:
    return {
        "id": run.id, "task": run.task, "dataset": run.dataset, "condition": run.condition,
        "share": run.share, "seed": run.seed, **_score(result), "examples": result.num_examples,
        "best_epoch": result.best_epoch, "epochs": [dict(one) for one in result.epochs],
        "seconds": round(result.seconds, 1), "wall_seconds": round(result.wall_seconds, 1),
        "layer_weights": [vars(one) for one in result.layer_weights],
        "config": run.metadata.get("config"), **result.made,
    }  # fmt: skip


def _score(result: RunResult) -> dict[str, Any]:
    return {"metric": result.metric, "value": result.value, "details": dict(result.details)}


def _shown(path: Path) -> str:
    """Return the name of a packaged model, or the path of another."""
    return path.name if path.parent == PACKAGED_MODELS else str(path)
