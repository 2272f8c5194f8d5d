"""The run directory of a training, of a biLM or a task: checked, marked, locked, recorded.

It holds ``run.json`` (resolved configuration), ``metrics.jsonl`` and ``checkpoints/``, and the best
model so far: that of a biLM in ``best/`` until the end. ``.elmokit-run`` marks a directory that was
empty when the run took it, until ``run.json`` exists. A training process locks ``.elmokit-lock``.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.config import from_dict, known_part, parse_record, to_dict
from elmokit.errors import ConfigError, InputError
from elmokit.files.changes import Change, changes
from elmokit.files.json_files import read_json, write_json
from elmokit.files.location import quoted
from elmokit.files.locks import directory_lock
from elmokit.files.remote import as_address
from elmokit.files.sources import STANDARD_INPUT
from elmokit.text.tokenizers.registry import AUTO
from elmokit.training.metrics_log import RUN_FILE
from elmokit.training.schedules import Limits
from elmokit.version import __version__
from elmokit.weights.locate import CONFIG_NAME
from elmokit.weights.tensor_files import check_name

log = logging.getLogger(__name__)

CHECKPOINTS, BEST = "checkpoints", "best"
MARK = ".elmokit-run"
NOT_RESUMABLE = "The run cannot be resumed; start a new one in another directory."
"""Advice for damaged files of a run."""


def is_recorded(run_dir: Path) -> bool:
    """Tell whether a run has begun in the directory: its text is ready, its settings written."""
    return (run_dir / RUN_FILE).exists()


def command_of(run_dir: Path) -> str | None:
    """Return the command that wrote a run: pretrain, finetune or train; None if it does not say."""
    if not is_recorded(run_dir):
        return None
    record = read_json(run_dir / RUN_FILE, advice="Copy it again.")
    config = record.get("config")
    return _command_of(config) if isinstance(config, Mapping) else None


def _command_of(config: Mapping[str, Any]) -> str:
    """Return the command by its settings; fine-tuning has none of the model's."""
    if "task" in config:
        return "train"
    return "pretrain" if "model" in config else "finetune"


def check_command(run_dir: Path, command: str) -> None:
    """Refuse a recorded run of another command; `FileExistsError` names both."""
    written_by = command_of(run_dir)
    if written_by is not None and written_by != command:
        raise FileExistsError(
            f"{run_dir} holds a run of `elmokit {written_by}`, which `elmokit {command}` neither "
            f"continues nor replaces. Continue it with `elmokit {written_by} … -o "
            f"{quoted(run_dir)} --resume`, or choose another directory."
        )


def check_run(
    run_dir: Path,
    config: Any,
    origin: Mapping[str, Any],
    *,
    resume: bool,
    fixed: Sequence[str],
) -> None:
    """Check that the directory can be taken, or that the run in it can be resumed.

    A resumed run must have the same ``fixed`` settings of ``config`` (a dataclass) and the same
    ``origin`` (JSON-serializable).

    Raises:
        FileExistsError: if there is a run and ``resume`` is not set, a run of another command, or
            anything else except the unfinished preparation of a run.
        NotADirectoryError: if ``run_dir`` is a file.
        ConfigError: names the first setting that differs.
    """
    if run_dir.exists() and not run_dir.is_dir():
        raise NotADirectoryError(
            f"{run_dir} is a file, but a run (--output) needs a directory. Name a new or an empty "
            "one."
        )
    check_name(run_dir)
    if is_recorded(run_dir):
        check_command(run_dir, _command_of(to_dict(config)))
        if not resume:
            raise FileExistsError(
                f"{run_dir} already holds a training run. Add --resume to continue it, or choose "
                "another directory."
            )
        _check_same(run_dir / RUN_FILE, config, origin, fixed)
        return
    if (run_dir / CONFIG_NAME).exists():
        raise FileExistsError(f"{run_dir} already holds a model. Choose another directory.")
    if (run_dir / MARK).exists() or not run_dir.exists():
        return
    foreign = sorted(path.name for path in run_dir.iterdir() if not path.name.startswith("."))
    if foreign:
        raise FileExistsError(
            f"{run_dir} is not empty (it holds {foreign[0]!r}) and is not a training run. Choose a "
            "new or an empty directory."
        )


def mark_run(run_dir: Path) -> None:
    """Create the directory if necessary, and mark it as a run's."""
    if not is_recorded(run_dir):
        run_dir.mkdir(parents=True, exist_ok=True)
        (run_dir / MARK).touch()


def exclusive_lock(run_dir: Path) -> AbstractContextManager[Path]:
    """Keep other processes from training in this directory; `FileExistsError` if one does."""
    busy = (
        f"Another process trains in {run_dir}. Wait for it, or stop it with `kill` (while "
        "training, it writes a checkpoint first), and continue with --resume."
    )
    return directory_lock(run_dir, busy=busy)


def record_run(
    run_dir: Path, config: Any, origin: Mapping[str, Any], limits: Limits | None = None
) -> None:
    """Write ``run.json``, with what `check_run` compares, unless it exists; remove the mark.

    Of a recorded run, other limits are recorded.
    """
    within = {} if limits is None else {"limits": to_dict(limits)}
    if not is_recorded(run_dir):
        record = {"elmokit_version": __version__, "config": to_dict(config), **origin}
        write_json(run_dir / RUN_FILE, record | within)
    elif limits is not None and _recorded_limits(run_dir) not in (None, limits):
        record = read_json(run_dir / RUN_FILE, advice=NOT_RESUMABLE)
        write_json(run_dir / RUN_FILE, record | within)
    (run_dir / MARK).unlink(missing_ok=True)


def limits_of(run_dir: Path, given: Limits) -> Limits:
    """Return the limits of a run: those given, else those recorded; log a change."""
    recorded = _recorded_limits(run_dir) if is_recorded(run_dir) else None
    if recorded is None or given == recorded:
        return given
    if given == Limits():
        log.info(
            "the run goes on to its limit: %s. --minutes, --epochs or --tokens sets another",
            recorded.describe(),
        )  # fmt: skip
        return recorded
    log.info("the limit is now %s (before: %s)", given.describe(), recorded.describe())
    return given


def _recorded_limits(run_dir: Path) -> Limits | None:
    """Return the limits in ``run.json``; None for a run of an earlier version."""
    path = run_dir / RUN_FILE
    found = read_json(path, advice=NOT_RESUMABLE).get("limits")
    if found is None:
        return None
    return parse_record(Limits, found, source=f"{path}, limits", advice=NOT_RESUMABLE)


def absolute_paths(paths: Sequence[Path]) -> list[str]:
    """Return paths or patterns as they are recorded, independent of the working directory."""
    return [as_address(path) or str(_absolute(path)) for path in paths]


def _absolute(path: Path) -> Path:
    try:
        return path if path == STANDARD_INPUT else path.resolve()
    except RuntimeError as error:  # of Python 3.11 and 3.12, for a loop of links
        raise InputError(f"{path}: {error}. Give another path.") from error


@dataclass(frozen=True, kw_only=True)
class _BaseModel:
    path: Any  # text, but perhaps no Unicode
    hash: str


@dataclass(frozen=True, kw_only=True)
class _RunRecord:
    """``run.json``, besides the settings, whose types depend on the kind of run."""

    config: dict[str, Any]
    elmokit_version: str = ""
    model: _BaseModel | None = None
    corpus: tuple[Any, ...] = ()
    valid: tuple[Any, ...] = ()
    vocab: str = ""
    reader: str | None = None
    limits: dict[str, Any] | None = None


def _read_record(run_file: Path) -> dict[str, Any]:
    record = read_json(run_file, advice=NOT_RESUMABLE, required=("config",))
    known = known_part(_RunRecord, record)
    parse_record(_RunRecord, known, source=run_file, advice=NOT_RESUMABLE)
    return record


def _check_same(
    run_file: Path, config: Any, origin: Mapping[str, Any], fixed: Sequence[str]
) -> None:
    """Raise if a fixed setting differs from the run to be resumed; log other changes."""
    record = _read_record(run_file)
    # settings newer than the run have their defaults
    saved = from_dict(type(config), record["config"], source=str(run_file))
    found = sorted(changes(to_dict(saved), to_dict(config)), key=lambda change: change.key)
    for change in found:
        if change.key == "text.tokenizer.name" and change.now == AUTO:
            continue  # the text is ready
        if any(f"{change.key}.".startswith(f"{one}.") for one in fixed):
            raise _differs(run_file, change)
        log.info("%s", change)
    for key, value in origin.items():
        if key in record and _comparable(key, record[key]) != _comparable(key, value):
            raise _differs(run_file, Change(key, record[key], value))


def _comparable(key: str, value: Any) -> Any:
    """Leave out what may differ: the spelling of paths and the model's location."""
    if key == "model":
        return value["hash"]
    if not isinstance(value, list):
        return value
    try:
        return absolute_paths([Path(str(path)) for path in value])
    except ValueError:  # damaged: with NUL or half a surrogate pair, it is no path
        return value


def _differs(run_file: Path, change: Change) -> ConfigError:
    return ConfigError(
        f"{run_file}: {change}. Resume with the run's own settings and files, or start a new run "
        "in another directory."
    )
