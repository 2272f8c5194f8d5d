"""The run directory: what stands in it, and how a run is opened, gone on with and closed.

``run.json`` is the resolved configuration, ``metrics.jsonl`` the log, ``checkpoints/`` what a
resumed run goes on from and ``best/`` the best model so far. Where the run ends, the best model's
files are put beside them, and the run directory is a model directory too.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import elmokit
from elmokit.errors import ConfigError
from elmokit.weights.locate import CONFIG_NAME

RUN_FILE, METRICS_FILE, CHECKPOINTS, BEST = "run.json", "metrics.jsonl", "checkpoints", "best"


def open_run(run_dir: Path, settings: Mapping[str, Any], *, resume: bool) -> None:
    """Make the run directory, or check that the run that stands there may be gone on with.

    Args:
        run_dir: Of the run.
        settings: As `record_run` writes them.
        resume: Whether a run that stands there is to be gone on with.

    Raises:
        FileExistsError: if there is a run and ``resume`` is not set, or a model of another origin.
        ConfigError: if the settings differ; names the first that does.
    """
    run_file = run_dir / RUN_FILE
    if run_file.exists():
        if not resume:
            raise FileExistsError(
                f"{run_dir} holds a training run already. Add --resume to go on with it, or choose "
                "another directory."
            )
        saved = json.loads(run_file.read_text(encoding="utf-8"))
        _check_same(saved["config"], settings["config"], run_file)
        return
    if (run_dir / CONFIG_NAME).exists():
        raise FileExistsError(f"{run_dir} holds a model already. Choose another directory.")
    run_dir.mkdir(parents=True, exist_ok=True)


def record_run(run_dir: Path, settings: Mapping[str, Any]) -> None:
    """Write ``run.json`` of a run whose text is ready; from now on the directory is taken.

    Args:
        run_dir: Of the run.
        settings: JSON-able; under ``config`` stands what a resumed run must share with the first.
    """
    if not (run_dir / RUN_FILE).exists():
        write_json(run_dir / RUN_FILE, {"elmokit_version": elmokit.__version__, **settings})


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all."""
    aside = path.with_name(f".writing-{path.name}")
    aside.write_text(json.dumps(dict(data), indent=2), encoding="utf-8")
    os.replace(aside, path)


def publish_best(run_dir: Path) -> None:
    """Put the best model's files into the run directory and remove ``best/``.

    ``best/`` is whole until all of them are there, so a kill on the way loses nothing; and
    ``config.json``, by which a model directory is known, comes last.
    """
    best = run_dir / BEST
    for path in sorted(best.iterdir(), key=lambda path: path.name == CONFIG_NAME):
        aside = run_dir / f".writing-{path.name}"
        shutil.copyfile(path, aside)
        os.replace(aside, run_dir / path.name)
    done = run_dir / f".removing-{BEST}"
    shutil.rmtree(done, ignore_errors=True)  # left by a run that was killed here
    best.rename(done)
    shutil.rmtree(done)


def _check_same(saved: Any, given: Any, run_file: Path, path: str = "") -> None:
    """Raise for the first setting that differs from the run to be resumed."""
    if isinstance(saved, dict) and isinstance(given, dict):
        for key in sorted({*saved, *given}):
            _check_same(saved.get(key), given.get(key), run_file, f"{path}.{key}" if path else key)
    elif saved != given:
        raise ConfigError(
            f"{run_file}: this run has {path}={saved!r}, the command says {given!r}. "
            "Resume with the settings of the run, or start a new one in another directory."
        )
