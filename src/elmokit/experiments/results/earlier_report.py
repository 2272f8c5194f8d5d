"""What a folder holds before an experiment writes its report there: nothing foreign is replaced."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError
from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.results.report import RATES_KEY, REPORT_FILES, RESULTS_FILE
from elmokit.files.json_files import read_json

HASH = re.compile(r"hash ([0-9a-f]+)")
_CELL = ("task", "dataset", "condition", "share", "seed")
MAX_SHOWN = 5
"""Differences in an error message."""


def check_earlier_report(
    output: Path, options: Mapping[str, Any], runs: Sequence[PlannedRun]
) -> None:
    """Check before any run that only a report of the same options would be replaced.

    A report may grow by tasks, seeds, or scores on test files. What an earlier version did not
    record is not compared.

    Args:
        output: Folder of the report.
        options: What the results file will say of the options, see `options_of`.
        runs: All planned runs.

    Raises:
        FileExistsError: if the folder has files of these names that no experiment wrote, or results
            that other options gave.
    """
    earlier = read_earlier_report(output)
    if earlier is None:
        return
    found = list(dict.fromkeys(_differences(earlier, options, runs)))
    if found:
        more = [f"and {len(found) - MAX_SHOWN} more"] if len(found) > MAX_SHOWN else []
        raise FileExistsError(
            f"{output} holds results made with other options; they would be replaced:\n  "
            + "\n  ".join([*found[:MAX_SHOWN], *more])
            + f"\nGive the earlier options, or another --output: in {output.parent} too, so that "
            "finished runs that both need are not repeated."
        )


def read_earlier_report(output: Path) -> Mapping[str, Any] | None:
    """Return the results in a folder of a report; None if it has no file of a report.

    Raises:
        FileExistsError: if the folder has files of these names that no experiment wrote.
    """
    there = [name for name in REPORT_FILES if (output / name).exists()]
    earlier = _read_report(output / RESULTS_FILE) if there else None
    if there and earlier is None:
        raise FileExistsError(
            f"{output} has files that no experiment wrote, and that this one would replace: "
            f"{', '.join(there)}. Move them away, or give another --output."
        )
    return earlier


def _read_report(path: Path) -> Mapping[str, Any] | None:
    """Return the results of an experiment; None if the file is missing or holds something else."""
    try:
        report = read_json(path, advice="", required=("experiment", "made", "runs"))
    except FormatError:
        return None
    runs, tables = report["runs"], (report["made"], report.get("data", {}), report.get("test", {}))
    is_report = isinstance(runs, list) and all(isinstance(one, Mapping) for one in [*tables, *runs])
    return report if is_report else None


def _differences(
    earlier: Mapping[str, Any], now: Mapping[str, Any], runs: Sequence[PlannedRun]
) -> Iterator[str]:
    if earlier["experiment"] != now["experiment"]:
        yield _differs("experiment", earlier["experiment"], now["experiment"])
        return
    for name in ("biLM", "word vectors"):
        values = [str(one["made"].get(name, "")) for one in (earlier, now)]
        hashes = [set(HASH.findall(value)) for value in values]
        if all(hashes) and hashes[0] != hashes[1]:
            yield _differs(name, *values)
    if earlier.get("tuned", now["tuned"]) != now["tuned"]:
        yield f"--tune, --rates: learning rates are {'' if earlier['tuned'] else 'not '}tuned there"
    for dataset, data in earlier.get("data", {}).items():
        if now["data"].get(dataset, data) != data:
            yield f"data: other files in {dataset}"
    for dataset, file in earlier.get("test", {}).get("files", {}).items():
        other = now.get("test", {}).get("files", {}).get(dataset)
        if other is None or other["sha256"] != file["sha256"]:
            yield _differs(f"--test: {dataset}", file["path"], other and other["path"])
    is_tuned_now = now["tuned"] and RATES_KEY not in now["made"]
    yield from _differences_of_runs(earlier["runs"], runs, is_tuned=is_tuned_now)


def _differences_of_runs(
    earlier: Sequence[Mapping[str, Any]], runs: Sequence[PlannedRun], *, is_tuned: bool
) -> Iterator[str]:
    tasks = {run.task for run in runs}
    planned = {_cell(vars(run)): run for run in runs}
    for one in earlier:
        if not one.keys() >= set(_CELL):
            continue
        if one["task"] not in tasks:
            yield f"--tasks: without {one['task']}, which has results"
        elif (run := planned.get(_cell(one))) is None:
            cell = f"{one['task']} ({one['dataset']}), {one['condition']}, seed {one['seed']}"
            yield f"{cell} has results and is not planned now"
        else:
            before, now = (dict(_flat(of.get("config") or {})) for of in (one, run.metadata))
            for key, value in before.items():
                is_chosen = is_tuned and key == "train.learning_rate"
                if now.get(key, value) != value and not is_chosen:
                    yield _differs(f"{one['task']}, {key}", value, now[key])


def _cell(run: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(run[name] for name in _CELL)


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted names of settings and their values."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _differs(name: str, earlier: object, now: object) -> str:
    return f"{name}: {earlier} there, {'none' if now is None else now} now"
