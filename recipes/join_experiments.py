"""Join parts of an experiment, each with tasks of its own, into one report.

    elmokit experiment table1 --tune --tasks ner,nli --vectors vectors.bin … -o one/table1
    elmokit experiment table1 --tune --tasks qa --vectors vectors.bin … -o two/table1
    python recipes/join_experiments.py one/table1 two/table1 -o experiments/table1

The parts may be of several machines and need not have the same word vectors, because scores are
compared within a task only. They must have the same biLM, and the settings that elmokit has now.
Gains and their tests are those of the parts; p-values are adjusted (Holm) for all tasks of the
experiment, also those that no part has. A part is the folder of an experiment or its results file,
such as those in docs/results/experiments.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from elmokit.config import from_dict, parse_record, to_dict
from elmokit.errors import FormatError, InputError
from elmokit.experiments.experiment import Experiment
from elmokit.experiments.plan import PlannedRun, plan_tasks
from elmokit.experiments.registry import find_experiment
from elmokit.experiments.results.comparison import Comparison, Difference, GainChange
from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.report import RESULTS_FILE, Report, write_report
from elmokit.experiments.runs.provenance import provenance
from elmokit.experiments.runs.store import RunResult
from elmokit.experiments.settings import HELD_OUT_SHARE, MAX_HELD_OUT
from elmokit.files.json_files import read_json
from elmokit.probes.layer_weights import MixWeights
from elmokit.tasks.runs.config import TaskRunConfig

ADVICE = "Give the folder or the results file of an experiment that elmokit wrote."
Key = tuple[str, str, str, float, int]
"""Task, data set, condition, share of the labels, seed."""


@dataclass(frozen=True)
class Part:
    """The results file of some tasks."""

    path: Path
    results: Mapping[str, Any]

    @property
    def tasks(self) -> list[tuple[str, str]]:
        """Tasks with a finished run, and their data sets."""
        return list(dict.fromkeys((run["task"], run["dataset"]) for run in self.results["runs"]))


@dataclass(frozen=True, kw_only=True)
class StoredRun(PlannedRun):
    """A run of a part, with the id that it had there."""

    stored_id: str

    @property
    def id(self) -> str:
        """The run's name on the disk of the machine that made it."""
        return self.stored_id


def read_part(path: Path) -> Part:
    """Read a part, from its folder or results file.

    Raises:
        FormatError: if it is missing, damaged, or no experiment.
    """
    path = path / RESULTS_FILE if path.is_dir() else path
    required = ["experiment", "made", "runs", "comparisons", "gain_changes"]
    return Part(path, read_json(path, advice=ADVICE, required=required))


def join(parts: Sequence[Part], output: Path) -> Report:
    """Write the joint report of parts.

    Raises:
        FormatError: if a part is damaged.
        InputError: if parts do not belong together; names what differs.
    """
    experiment = find_experiment(
        _the_same(parts, "experiment", lambda part: part.results["experiment"])
    )
    if not experiment.tasks:
        raise InputError(f"{experiment.name} trains no task, so it has no parts to join.")
    bilm = _the_same(parts, "biLM", lambda part: part.results["made"]["biLM"])
    scored = _the_same(parts, "scored data", lambda part: part.results["made"]["scored"])
    _check_tasks(parts)
    findings = findings_of(experiment, parts)
    finished = [result.made for _, result in findings.finished]
    metadata = {
        "command": "; ".join(part.results["made"]["command"] for part in parts),
        "written": provenance()["date"],
        "hardware": "; ".join(sorted({made["hardware"] for made in finished})),
        "versions": "; ".join(sorted({made["versions"] for made in finished})),
        "biLM": bilm,
        "word vectors": _by_tasks(parts, "word vectors"),
        "seeds": ", ".join(map(str, sorted({run.seed for run, _ in findings.finished}))),
        "scored": scored,
    }
    output.mkdir(parents=True, exist_ok=True)
    return write_report(experiment, findings, metadata, output, on_test=None, test_files={})


def findings_of(experiment: Experiment, parts: Sequence[Part]) -> Findings:
    """Return the runs of all parts in the experiment's order, and what the parts tested."""
    stored = {_key(run): (run, part) for part in parts for run in part.results["runs"]}
    metadata = {
        one.dataset: {
            "data": {"max_train": one.max_train, "held_out": [HELD_OUT_SHARE, MAX_HELD_OUT]}
        }
        for one in experiment.tasks
    }
    planned = plan_tasks(
        experiment.tasks, experiment.conditions, shares=experiment.shares, metadata=metadata,
        max_seeds=experiment.max_seeds,
    )  # fmt: skip
    runs: list[tuple[PlannedRun, RunResult | None]] = []
    for run in planned:
        found = stored.pop(_key(vars(run)), None)
        runs.append((run, None) if found is None else _stored_run(run, *found))
    if stored:
        (task, _, condition, share, seed), (_, part) = next(iter(stored.items()))
        raise InputError(
            f"{part.path} has a run that {experiment.name} does not have: {task}, {condition}, "
            f"share {share:g}, seed {seed}."
        )
    findings = Findings(_with_tuned_rates(runs), experiment.reference)
    return replace(findings, known=_known(findings, parts))


def _stored_run(
    run: PlannedRun, table: Mapping[str, Any], part: Part
) -> tuple[StoredRun, RunResult]:
    """Return a run of a part with its result; refuse one with other settings."""
    config = from_dict(TaskRunConfig, table["config"], source=str(part.path))
    made_with = to_dict(config.resolved(with_static=True))
    differing = _differences(made_with, run.metadata["config"])
    if differing - {"train.learning_rate"}:
        raise InputError(
            f"{part.path} has a run with other settings than {run.describe()} has now: "
            f"{', '.join(sorted(differing))}. Run it again with this version."
        )
    values = {one.name: getattr(run, one.name) for one in fields(PlannedRun)}
    values["metadata"] = {**run.metadata, "config": made_with}
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
    return StoredRun(**values, stored_id=table["id"]), result


def _with_tuned_rates(
    runs: Iterable[tuple[PlannedRun, RunResult | None]],
) -> list[tuple[PlannedRun, RunResult | None]]:
    """Give planned runs the learning rate of the finished ones of their task and condition."""
    runs = list(runs)
    rates = {
        (run.task, run.dataset, run.condition): run.metadata["config"]["train"]["learning_rate"]
        for run, result in runs
        if result is not None
    }
    found = []
    for run, result in runs:
        config = run.metadata["config"]
        usual = config["train"]["learning_rate"]
        rate = rates.get((run.task, run.dataset, run.condition), usual)
        config = {**config, "train": {**config["train"], "learning_rate": rate}}
        found.append((replace(run, metadata={**run.metadata, "config": config}), result))
    return found


def _known(findings: Findings, parts: Sequence[Part]) -> dict[object, Any]:
    """Return the tests of the parts, as `Findings` knows those that it has already made.

    Parts have no counts of examples, so nothing can be tested anew.
    """
    known: dict[object, Any] = {}

    def cells(one: Mapping[str, Any], share: float) -> list[tuple[Any, tuple[int, ...]]]:
        pair = [
            findings.cells[one["task"], one["dataset"], share, one[name]]
            for name in ("condition", "reference")
        ]
        return [(cell.key, tuple(cell.results)) for cell in pair]

    for part in parts:
        for one in part.results["comparisons"]:
            key = tuple(cells(one, one["share"]))
            lists = {name: tuple(one[name]) for name in ("seeds", "reference_seeds")}
            known[key] = _record(Comparison, {**one, **lists}, part)
        for one in part.results["gain_changes"]:
            key = tuple(cells(one, one["share"]) + cells(one, 1.0))
            known[key] = _record(GainChange, {k: v for k, v in one.items() if k != "change"}, part)
    for (task, dataset, share, condition), cell in findings.cells.items():
        reference = findings.cells.get((task, dataset, share, findings.reference or ""))
        if reference is None or reference is cell:
            continue
        if tuple((one.key, tuple(one.results)) for one in (cell, reference)) not in known:
            raise FormatError(
                f"No part has a comparison of {condition} and {findings.reference} for {task}, "
                f"with the seeds of its runs. {ADVICE}"
            )
    return known


def _record(kind: type[Difference], table: Mapping[str, Any], part: Part) -> Difference:
    return parse_record(kind, table, source=part.path, advice=ADVICE)


def _key(run: Mapping[str, Any]) -> Key:
    return run["task"], run["dataset"], run["condition"], run["share"], run["seed"]


def _the_same(parts: Sequence[Part], what: str, of: Callable[[Part], str]) -> str:
    """Return what all parts have alike, or refuse them."""
    first, *others = ((part, of(part)) for part in parts)
    for part, value in others:
        if value != first[1]:
            raise InputError(
                f"The parts differ in {what}: {first[0].path} has {first[1]!r}, {part.path} "
                f"{value!r}. Only parts of one experiment with one biLM can be joined."
            )
    return first[1]


def _check_tasks(parts: Sequence[Part]) -> None:
    """Refuse parts that have a task in common, and those with scores on test files."""
    seen: dict[tuple[str, str], Part] = {}
    for part in parts:
        if "test" in part.results:
            raise InputError(
                f"{part.path} has scores on test files, which are not joined. Write the part "
                "again without --test: finished runs are not repeated."
            )
        for task in part.tasks:
            if seen.setdefault(task, part) is not part:
                raise InputError(
                    f"{seen[task].path} and {part.path} both have {task[0]} ({task[1]}). A task "
                    "must be in one part, whose runs all have the same word vectors."
                )


def _by_tasks(parts: Sequence[Part], name: str) -> str:
    """Return how parts were made, each with its tasks, or once if all are alike."""
    values = {part.path: part.results["made"][name] for part in parts}
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return "; ".join(
        f"{', '.join(task for task, _ in part.tasks)}: {values[part.path]}" for part in parts
    )


def _differences(one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> set[str]:
    """Return the dotted names of settings in which two tables differ."""
    found: set[str] = set()
    for name in one.keys() | other.keys():
        left, right = one.get(name), other.get(name)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            found |= _differences(left, right, f"{prefix}{name}.")
        elif left != right:
            found.add(f"{prefix}{name}")
    return found


def main() -> None:
    """Parse, join, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", type=Path, nargs="+", help="folders or results files")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the report")
    options = parser.parse_args()
    try:
        report = join([read_part(path) for path in options.parts], options.output)
    except (InputError, FormatError) as error:
        parser.exit(1, f"{error}\n")
    print("\n".join(map(str, report.files)))


if __name__ == "__main__":
    main()
