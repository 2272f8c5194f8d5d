"""Parts of an experiment for recipes/join_experiments.py: their results files, read back."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from published_scores import scored_hash

from elmokit.config import parse_record, to_dict
from elmokit.errors import FormatError, InputError
from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.results.comparison import Difference
from elmokit.experiments.results.report import RESULTS_FILE
from elmokit.experiments.runs.store import RunResult
from elmokit.files.json_files import read_json
from elmokit.probes.layer_weights import MixWeights
from elmokit.tasks.runs.config import TaskRunConfig

ADVICE = "Give the folder or the results file of an experiment by this version of elmokit."
PART_KEYS = (
    "experiment", "made", "tables", "runs", "missing", "comparisons", "gain_changes",
)  # fmt: skip
RUN_KEYS = (
    "id", "task", "dataset", "condition", "share", "seed", "metric", "value", "details",
    "examples", "best_epoch", "epochs", "seconds", "wall_seconds", "layer_weights", "config",
    "date", "hardware", "versions",
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """Results of some tasks of an experiment."""

    path: Path
    results: dict[str, Any]

    @property
    def tasks(self) -> list[tuple[str, str]]:
        """Tasks with a finished run, and their data sets."""
        return list(dict.fromkeys((run["task"], run["dataset"]) for run in self.results["runs"]))

    @property
    def bilm_hash(self) -> str:
        """Start of the hash of the biLM, whose path may differ between machines."""
        return scored_hash(self.results)


@dataclass(frozen=True, kw_only=True)
class StoredRun(PlannedRun):
    """A run of a part, with the id that it has there."""

    stored_id: str

    @property
    def id(self) -> str:
        """The run's name on the disk of the machine that made it."""
        return self.stored_id


def read_part(path: Path) -> Part:
    """Read a part, from its folder or results file.

    Raises:
        FormatError: if it is missing, damaged, or no experiment of this version.
    """
    path = path / RESULTS_FILE if path.is_dir() else path
    part = Part(path, read_json(path, advice=ADVICE, required=PART_KEYS))
    for run in part.results["runs"]:
        if lacking := [name for name in RUN_KEYS if name not in run]:
            raise FormatError(f"{path}: a run lacks `{lacking[0]}`. {ADVICE}")
    for name in ("biLM", "word vectors", "command", "scored"):
        if name not in part.results["made"]:
            raise FormatError(f"{path}: `made` lacks `{name}`. {ADVICE}")
    return part


def read_run(run: PlannedRun, table: Mapping[str, Any], part: Part) -> tuple[StoredRun, RunResult]:
    """Return a run of a part with its result; refuse one with other settings."""
    config = parse_record(TaskRunConfig, table["config"], source=part.path, advice=ADVICE)
    settings = to_dict(config.resolved(with_static=True))
    for name, value, planned in _differences(settings, run.metadata["config"]):
        raise InputError(
            f"{part.path}: {run.describe()} has {name} = {value}, the settings have {planned}. "
            "Parts must be made with the settings of this version, without --set."
        )
    result = RunResult(
        metric=table["metric"], value=table["value"], details=table["details"],
        num_examples=table["examples"], epochs=tuple(table["epochs"]),
        best_epoch=table["best_epoch"], seconds=table["seconds"],
        wall_seconds=table["wall_seconds"],
        layer_weights=tuple(
            parse_record(MixWeights, one, source=part.path, advice=ADVICE)
            for one in table["layer_weights"]
        ),
        made={name: table[name] for name in ("date", "hardware", "versions")},
    )  # fmt: skip
    return with_id(run, table["id"]), result


def with_id(run: PlannedRun, stored_id: str) -> StoredRun:
    """Return a planned run with the id that it has in a part."""
    values = {one.name: getattr(run, one.name) for one in fields(PlannedRun)}
    return StoredRun(**values, stored_id=stored_id)


def read_test(kind: type[Difference], table: Mapping[str, Any], part: Part) -> Difference:
    """Return a comparison or change of a gain, as a part has it."""
    return parse_record(kind, table, source=part.path, advice=ADVICE)


def _differences(
    one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = ""
) -> list[tuple[str, Any, Any]]:
    """Return the dotted names of settings in which two tables differ, and both values."""
    found = []
    for name in sorted(one.keys() | other.keys()):
        left, right = one.get(name), other.get(name)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            found += _differences(left, right, f"{prefix}{name}.")
        elif left != right:
            found.append((f"{prefix}{name}", left, right))
    return found
