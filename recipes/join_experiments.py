r"""Join parts of an experiment, each with tasks of its own, into one report.

    elmokit experiment table1 --tune --tasks ner,nli --vectors vectors.bin … -o one/table1
    elmokit experiment table1 --tune --tasks qa --vectors vectors.bin … -o two/table1
    python recipes/join_experiments.py one/table1 two/table1 -o joined/table1

The parts may come from several machines, with different word vectors, because scores are compared
only within a task. They must have the same biLM and the settings of this version. Gains and tests
are taken from the parts; p-values are adjusted (Holm) for all tasks of the experiment, including
those in no part. A part is the folder of an experiment or its results file. A joint report can be
a part itself, also a published one: further tasks are joined to it as they finish.

An experiment whose runs are all among those of another one needs no runs of its own:

    python recipes/join_experiments.py docs/results/experiments/table1.json \
        --experiment figure2 -o joined/figure2
"""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from experiment_parts import ADVICE, Part, read_part, read_run, read_test, with_id

from elmokit.cli.error_messages import exit_on_user_error
from elmokit.errors import FormatError, InputError
from elmokit.experiments.experiment import Experiment
from elmokit.experiments.plan import PlannedRun, plan_tasks
from elmokit.experiments.registry import find_experiment
from elmokit.experiments.results.comparison import Cell, Comparison, Difference, GainChange
from elmokit.experiments.results.earlier_report import read_earlier_report
from elmokit.experiments.results.findings import Findings, cells_key
from elmokit.experiments.results.report import (
    RATES_KEY,
    RESULTS_FILE,
    Report,
    made_with,
    what_is_scored,
    write_report,
)
from elmokit.experiments.results.tables import settings_table
from elmokit.experiments.runs.provenance import now
from elmokit.experiments.runs.store import RunResult
from elmokit.experiments.runs.tuning import RATE_FACTORS
from elmokit.experiments.settings import HELD_OUT_SHARE, MAX_HELD_OUT
from elmokit.files.pictures import check_matplotlib

IN_NO_PART = "in no part"
Value = TypeVar("Value")
Key = tuple[str, str, str, float, int]
"""Task, data set, condition, share of the labels, seed."""


def join(parts: Sequence[Part], output: Path, *, name: str | None = None) -> Report:
    """Write the joint report of parts, or that of another experiment, ``name``, with their runs.

    Raises:
        FormatError: if a part is damaged.
        FileExistsError: if ``output`` has files that no experiment wrote.
        InputError: if parts do not belong together (of another experiment or biLM, some tuned and
            some not), or ``output`` is one of them or holds another experiment.
        MissingExtraError: if the experiment has a plot and matplotlib is missing.
    """
    if (output / RESULTS_FILE).resolve() in [part.path.resolve() for part in parts]:
        raise InputError(
            f"{output} is the folder of a part, which would be overwritten. Give another --output."
        )
    given_name = _shared(parts, "experiment", lambda part: part.results["experiment"])
    name = name or given_name
    earlier = read_earlier_report(output)
    if earlier is not None and earlier["experiment"] != name:
        raise InputError(
            f"{output} holds results of {earlier['experiment']}, not of {name}. Give another "
            "--output."
        )
    _shared(parts, "hash of the biLM", lambda part: part.bilm_hash)
    _shared(parts, "scored data", lambda part: part.results["made"]["scored"])
    _check_tasks(parts)
    given = {task for part in parts for task in part.tasks}
    for run in earlier["runs"] if earlier is not None else ():
        if (run["task"], run["dataset"]) not in given:
            raise InputError(
                f"{output} has results of {run['task']} ({run['dataset']}), which no part has. Add "
                "it to the parts, and give another --output."
            )
    experiment = find_experiment(name)
    if not experiment.tasks:
        raise InputError(f"{name} trains no task, so it has no parts to join.")
    if experiment.plot is not None:
        check_matplotlib()
    findings = findings_of(experiment, parts)
    _check_settings(findings, parts)
    metadata = {
        "command": "; ".join(part.results["made"]["command"] for part in parts),
        "written": now(),
        **made_with(findings),
        "biLM": parts[0].results["made"]["biLM"],
        "word vectors": _by_tasks(parts, "word vectors"),
        "scored": what_is_scored(findings),
    }
    if with_rates := [part for part in parts if RATES_KEY in part.results["made"]]:
        metadata[RATES_KEY] = _by_tasks(with_rates, RATES_KEY, among=parts)
    output.mkdir(parents=True, exist_ok=True)
    return write_report(experiment, findings, metadata, output, on_test=None, test_files={})


def findings_of(experiment: Experiment, parts: Sequence[Part]) -> Findings:
    """Return the runs of all parts in the experiment's order, and what the parts tested."""
    stored: dict[Key, tuple[Mapping[str, Any], Part]] = {}
    for part in parts:
        for run in part.results["runs"]:
            if _key(run) in stored:
                raise FormatError(f"{part.path} has the run {run['id']} twice. {ADVICE}")
            stored[_key(run)] = run, part
    missing = {
        part.path: {one["run"]: one for one in part.results["missing"]} for part in parts
    }  # fmt: skip
    runs: list[tuple[PlannedRun, RunResult | None]] = []
    reasons: dict[str, str] = {}
    names = {part.path: part.results["experiment"] for part in parts}
    of_another = {path: name for path, name in names.items() if name != experiment.name}
    planned = _plan(experiment, stored)
    by_task = {task: part for part in parts for task in part.tasks}
    for run in planned:
        if found := stored.pop(_key(vars(run)), None):
            runs.append(read_run(run, *found))
            continue
        owner = by_task.get((run.task, run.dataset))
        if owner is None:
            reasons[run.id] = IN_NO_PART
        elif (lost := missing[owner.path].get(run.describe())) is not None:
            run = with_id(run, lost["id"])
            reasons[run.id] = lost["reason"]
        elif owner.path in of_another:
            raise InputError(
                f"{owner.path} has the runs of {of_another[owner.path]}, without {run.describe()}, "
                f"which {experiment.name} needs. Run `elmokit experiment {experiment.name}`."
            )
        else:
            raise InputError(
                f"{owner.path} was made without {run.describe()}, probably with --seeds. Parts "
                "must have all runs of their tasks, or say why one is missing."
            )
        runs.append((run, None))
    if not any(result for _, result in runs):
        raise InputError(f"No part has a run of {experiment.name}.")
    for run, part in stored.values():
        if part.path in of_another:
            continue
        raise InputError(
            f"{part.path} has a run that is not planned in {experiment.name}, maybe because of "
            f"--seeds: {run['task']} ({run['dataset']}), {run['condition']}, seed {run['seed']}."
        )
    is_tuned = _shared(parts, "tuning of the rates", _is_tuned)
    findings = Findings(runs, experiment.reference, reasons, is_tuned=is_tuned)
    return replace(findings, known=_known(findings, parts))


def _plan(
    experiment: Experiment, stored: Mapping[Key, tuple[Mapping[str, Any], Part]]
) -> list[PlannedRun]:
    """Return the planned runs, with the learning rates of the stored ones."""
    tuned = {condition.name: condition.tuned_name for condition in experiment.conditions}
    usual = {(one.task, one.dataset): one.learning_rate for one in experiment.tasks}
    rates: dict[tuple[str, str, str], float] = {}
    for (task, dataset, condition, *_), (run, part) in stored.items():
        rate: float = run["config"]["train"]["learning_rate"]
        known = usual.get((task, dataset), rate)
        if not any(math.isclose(rate, factor * known) for factor in RATE_FACTORS):
            raise InputError(
                f"{part.path} has a learning rate of {rate:g} in {task}, {condition}, which is "
                f"neither that of the settings, {known:g}, nor one that --tune tries."
            )
        if rates.setdefault((task, dataset, tuned.get(condition, condition)), rate) != rate:
            raise InputError(f"{part.path} has several learning rates in {task}, {condition}.")
    data = {
        one.dataset: {
            "data": {"max_train": one.max_train, "held_out": [HELD_OUT_SHARE, MAX_HELD_OUT]}
        }
        for one in experiment.tasks
    }
    return plan_tasks(
        experiment.tasks, experiment.conditions, shares=experiment.shares, metadata=data,
        max_seeds=experiment.max_seeds, learning_rates=rates,
    )  # fmt: skip


def _known(findings: Findings, parts: Sequence[Part]) -> dict[object, Any]:
    """Return the parts' tests in the form of `Findings.known`.

    Parts have no counts of examples, so nothing can be tested anew: every test must be there.
    """
    tests: dict[tuple[Any, ...], tuple[Difference, Part]] = {}
    for part in parts:
        for one in part.results["comparisons"]:
            seeds = {name: tuple(one[name]) for name in ("seeds", "reference_seeds")}
            tests["gain", *_row(one)] = read_test(Comparison, {**one, **seeds}, part), part
        for one in part.results["gain_changes"]:
            table = {name: value for name, value in one.items() if name != "change"}
            tests["change of the gain", *_row(one)] = read_test(GainChange, table, part), part
    known: dict[object, Any] = {}
    for (task, dataset, share, condition), cell in findings.cells.items():
        pair = _pair(findings, cell)
        if pair is None:
            continue
        row = task, dataset, share, condition
        known[cells_key(pair)] = _test_of(tests, "gain", row, pair)
        whole = findings.cells.get((task, dataset, 1.0, condition))
        whole_pair = None if whole is None or share == 1 else _pair(findings, whole)
        if whole_pair is not None:
            known[cells_key((*pair, *whole_pair))] = _test_of(
                tests, "change of the gain", row, pair
            )
    return known


def _pair(findings: Findings, cell: Cell) -> tuple[Cell, Cell] | None:
    """Return a cell and that of the reference; none if that is missing, or is the cell itself."""
    base = findings.cells.get((cell.task, cell.dataset, cell.share, findings.reference or ""))
    return None if base is None or base is cell else (cell, base)


def _test_of(
    tests: Mapping[tuple[Any, ...], tuple[Difference, Part]],
    kind: str,
    row: tuple[str, str, float, str],
    pair: tuple[Cell, Cell],
) -> Difference:
    """Return the test of a row, or raise a `FormatError` if it is missing or of other seeds."""
    task, _, share, condition = row
    found = tests.get((kind, *row))
    if found is None:
        raise FormatError(
            f"No part has a test of the {kind} of {condition} in {task} with {100 * share:g} % of "
            f"the labels. {ADVICE}"
        )
    test, part = found
    seeds = [tuple(sorted(cell.results)) for cell in pair]
    if isinstance(test, Comparison) and [test.seeds, test.reference_seeds] != seeds:
        raise FormatError(
            f"{part.path}: the test of {condition} in {task} is not of the seeds "
            f"of its runs. {ADVICE}"
        )
    return test


def _key(run: Mapping[str, Any]) -> Key:
    return run["task"], run["dataset"], run["condition"], run["share"], run["seed"]


def _row(one: Mapping[str, Any]) -> tuple[str, str, float, str]:
    return one["task"], one["dataset"], one["share"], one["condition"]


def _is_tuned(part: Part) -> bool:
    return part.results.get("tuned", " --tune" in part.results["made"]["command"])


def _shared(parts: Sequence[Part], name: str, value_of: Callable[[Part], Value]) -> Value:
    """Return the value that all parts share, or raise `InputError`."""
    first, *others = parts
    value = value_of(first)
    for part in others:
        if value_of(part) != value:
            raise InputError(
                f"The parts differ in the {name}: {value!r} in {first.path}, {value_of(part)!r} "
                f"in {part.path}."
            )
    return value


def _check_tasks(parts: Sequence[Part]) -> None:
    """Refuse parts with a common task, without a run, or with scores on test files."""
    seen: dict[tuple[str, str], Part] = {}
    for part in parts:
        if "test" in part.results:
            raise InputError(
                f"{part.path} has scores on test files, which cannot be joined. Write it again "
                "without --test, to another folder beside it: finished runs are not repeated."
            )
        if not part.tasks:
            raise InputError(f"{part.path} has no finished run.")
        for task in part.tasks:
            if seen.setdefault(task, part) is not part:
                raise InputError(
                    f"{seen[task].path} and {part.path} both have {task[0]} ({task[1]}). A task "
                    "must be in one part, whose runs all have the same word vectors."
                )


def _check_settings(findings: Findings, parts: Sequence[Part]) -> None:
    """Refuse parts whose table of settings is not that of this version: sizes, held-out part."""
    now = settings_table(replace(findings, runs=findings.finished))
    for part in parts:
        tables = [table for table in part.results["tables"] if table["title"] == now.title]
        rows = [tuple(row[:-1]) for table in tables for row in table["rows"]]  # without rates
        for *row, _ in now.rows:
            if (row[0], row[1]) in part.tasks and tuple(row) not in rows:
                raise InputError(
                    f"{part.path} was made with other settings of {row[0]} than this version has: "
                    f"{', '.join(map(' '.join, zip(now.header, row, strict=False)))} is not in "
                    "its table."
                )


def _by_tasks(parts: Sequence[Part], name: str, *, among: Sequence[Part] = ()) -> str:
    """Return how parts were made, each with its tasks, or once if all are alike.

    Among more parts, the tasks are always named.
    """
    values = [(part, part.results["made"][name]) for part in parts]
    if len({value for _, value in values}) == 1 and len(parts) >= len(among):
        return values[0][1]
    return "; ".join(_with_tasks(part, value) for part, value in values)


def _with_tasks(part: Part, value: str) -> str:
    """Return how a part was made, after its tasks, which a joint report already names."""
    tasks = [task for task, _ in part.tasks]
    has_them = set(value.split(": ")[0].split(", ")) <= set(tasks)
    return value if has_them else f"{', '.join(tasks)}: {value}"


def main() -> None:
    """Parse, join, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", type=Path, nargs="+", help="folders or results files")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the report")
    parser.add_argument(
        "--experiment", metavar="NAME", help="another experiment, all of whose runs the parts have"
    )
    options = parser.parse_args()
    parts = [read_part(path) for path in options.parts]
    report = join(parts, options.output, name=options.experiment)
    print("\n".join(map(str, report.files)))


if __name__ == "__main__":
    with exit_on_user_error():
        main()
