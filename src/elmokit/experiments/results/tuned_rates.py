"""Learning rates that another command has tuned, read from the results it wrote."""

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError, InputError
from elmokit.experiments.results.report import RESULTS_FILE
from elmokit.experiments.runs.tuning import ConditionKey
from elmokit.files.json_files import read_json

ADVICE = "Give the results.json that an experiment with --tune wrote, or its folder."


def read_tuned_rates(path: Path, needed: Collection[ConditionKey]) -> dict[ConditionKey, float]:
    """Return the learning rates of the needed conditions, from a results file or its folder.

    Raises:
        FileNotFoundError: if there is no such file.
        FormatError: if it is damaged, or no results of an experiment.
        InputError: if its rates were not tuned, or it has no run of a needed condition.
    """
    path = path / RESULTS_FILE if path.is_dir() else path
    if not path.exists():
        raise FileNotFoundError(f"There is no file of learning rates {path}. {ADVICE}")
    results = read_json(path, advice=ADVICE, required=("experiment", "tuned", "runs"))
    if results["tuned"] is not True:
        raise InputError(f"{path} was made without --tune: its learning rates are not tuned.")
    rates: dict[ConditionKey, float] = {}
    for run in _runs(results, path):
        key, rate = _rate(run, path)
        if rates.setdefault(key, rate) != rate:
            raise FormatError(f"{path}: {', '.join(key)} has several learning rates. {ADVICE}")
    if lacking := [", ".join(key) for key in needed if key not in rates]:
        raise InputError(
            f"{path} has no run of {'; '.join(lacking)} (task, data, condition), so no learning "
            "rate for it. Use --tune, choose other --tasks, or give results that have it."
        )
    return {key: rates[key] for key in needed}


def _runs(results: Mapping[str, Any], path: Path) -> list[Any]:
    if not isinstance(results["runs"], list):
        raise FormatError(f"{path}: `runs` must be a list. {ADVICE}")
    return results["runs"]


def _rate(run: Any, path: Path) -> tuple[ConditionKey, float]:
    try:
        key = run["task"], run["dataset"], run["condition"]
        rate = run["config"]["train"]["learning_rate"]
    except (KeyError, TypeError) as error:
        raise FormatError(f"{path}: a run has no learning rate. {ADVICE}") from error
    is_rate = isinstance(rate, int | float) and not isinstance(rate, bool) and 0 < rate < math.inf
    if not is_rate or not all(isinstance(name, str) for name in key):
        raise FormatError(f"{path}: a run has the learning rate {rate!r}. {ADVICE}")
    return key, float(rate)
