"""What a folder holds before an experiment writes its report there: nothing foreign is replaced."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError
from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.results.report import REPORT_FILES, RESULTS_FILE
from elmokit.files.json_files import read_json

HASH = re.compile(r"hash ([0-9a-f]+)")
MAX_SHOWN = 5
"""Differences in an error message."""


def check_earlier_report(
    output: Path, options: Mapping[str, Any], runs: Sequence[PlannedRun], *, seeds: int | None
) -> None:
    """Check before any run that only a report of the same options would be replaced.

    A report may grow by tasks, seeds, or scores on test files. What an earlier version did not
    record is not compared.

    Args:
        output: Folder of the report.
        options: What the results file will say of the options, see `options_of`.
        runs: All planned runs.
        seeds: The number of seeds that the user asks for.

    Raises:
        FileExistsError: if the folder has files of these names that no experiment wrote, or results
            that other options gave.
    """
    there = [name for name in REPORT_FILES if (output / name).exists()]
    if not there:
        return
    try:
        path = output / RESULTS_FILE
        earlier = read_json(path, advice="", required=("experiment", "made", "runs"))
    except FormatError as error:
        raise FileExistsError(
            f"{output} has files that no experiment wrote, and that this one would replace: "
            f"{', '.join(there)}. Move them away, or give another --output."
        ) from error
    found = list(dict.fromkeys(_differences(earlier, options, runs, seeds)))
    if found:
        more = [f"and {len(found) - MAX_SHOWN} more"] if len(found) > MAX_SHOWN else []
        raise FileExistsError(
            f"{output} has the results of other options, which would be replaced:\n  "
            + "\n  ".join([*found[:MAX_SHOWN], *more])
            + f"\nGive the earlier options, or another --output: in {output.parent} too, so that "
            "finished runs that both need are not repeated."
        )


def _differences(
    earlier: Mapping[str, Any], now: Mapping[str, Any], runs: Sequence[PlannedRun],
    seeds: int | None,
) -> Iterator[str]:  # fmt: skip
    if earlier["experiment"] != now["experiment"]:
        yield _differs("experiment", earlier["experiment"], now["experiment"])
        return
    for name in ("biLM", "word vectors"):
        values = [str(one["made"].get(name, "")) for one in (earlier, now)]
        hashes = [set(HASH.findall(value)) for value in values]
        if all(hashes) and hashes[0] != hashes[1]:
            yield _differs(name, *values)
    if earlier.get("tuned", now["tuned"]) != now["tuned"]:
        yield f"--tune: learning rates are {'' if earlier['tuned'] else 'not '}tuned there"
    for dataset, data in earlier.get("data", {}).items():
        if now["data"].get(dataset, data) != data:
            yield f"data: other files in {dataset}"
    for dataset, file in earlier.get("test", {}).get("files", {}).items():
        other = now.get("test", {}).get("files", {}).get(dataset)
        if other is None or other["sha256"] != file["sha256"]:
            yield _differs(f"--test: {dataset}", file["path"], other and other["path"])
    yield from _differences_of_runs(earlier["runs"], runs, seeds, is_tuned=now["tuned"])


def _differences_of_runs(
    earlier: Sequence[Mapping[str, Any]], runs: Sequence[PlannedRun], seeds: int | None, *,
    is_tuned: bool,
) -> Iterator[str]:  # fmt: skip
    tasks = {run.task for run in runs}
    planned = {_cell(vars(run)): run for run in runs}
    for one in earlier:
        if one["task"] not in tasks:
            yield f"--tasks: without {one['task']}, which has results"
        elif seeds is not None and one["seed"] >= seeds:
            yield f"--seeds: {seeds} now, without seed {one['seed']}, which has results"
        elif (run := planned.get(_cell(one))) is not None:
            before, now = (dict(_flat(of.get("config") or {})) for of in (one, run.metadata))
            for key, value in before.items():
                is_chosen = is_tuned and key == "train.learning_rate"
                if now.get(key, value) != value and not is_chosen:
                    yield _differs(f"{one['task']}, {key}", value, now[key])


def _cell(run: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(run[name] for name in ("task", "dataset", "condition", "share", "seed"))


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted names of settings and their values."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _differs(name: str, earlier: object, now: object) -> str:
    return f"{name}: {earlier} there, {'none' if now is None else now} now"
