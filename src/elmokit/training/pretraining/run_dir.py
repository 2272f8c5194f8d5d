"""The run directory: what stands in it, and how a run is opened, gone on with and closed.

``run.json`` is the resolved configuration, ``metrics.jsonl`` the log, ``checkpoints/`` what a
resumed run goes on from and ``best/`` the best model so far. Where the run ends, the best model's
files are put beside them, and the run directory is a model directory too. Until ``run.json`` is
written ``.elmokit-run`` marks the directory as one that was empty when the run took it. While a
process trains there it holds ``.elmokit-lock``, a file that stays; of a killed process the system
lets go.
"""

import errno
import json
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

import elmokit
from elmokit.config import from_dict, to_dict
from elmokit.errors import ConfigError, FormatError
from elmokit.files.atomic import atomic_file
from elmokit.files.sources import STANDARD_INPUT
from elmokit.weights.locate import CONFIG_NAME

log = logging.getLogger(__name__)

RUN_FILE, METRICS_FILE, CHECKPOINTS, BEST = "run.json", "metrics.jsonl", "checkpoints", "best"
MARK, LOCK = ".elmokit-run", ".elmokit-lock"
FIXED_SETTINGS = (
    "model",
    "text",
    "vocab",
    "softmax",
    "optimizer.name",
    "train.batch_size",
    "train.unroll_steps",
    "train.seed",
    "train.shuffle",
    "train.precision",
)
"""What a run keeps from beginning to end; all other settings may be changed at a resume."""

_NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}
"""What file systems say that have no locks; some network file systems have none."""


def is_recorded(run_dir: Path) -> bool:
    """Whether a run stands in the directory: its text is ready, its settings are written."""
    return (run_dir / RUN_FILE).exists()


def open_run(run_dir: Path, config: Any, origin: Mapping[str, Any], *, resume: bool) -> None:
    """Take the run directory, or check that the run that stands there may be gone on with.

    Args:
        run_dir: Of the run.
        config: A dataclass, of which `FIXED_SETTINGS` must be those of the run that stands there.
        origin: JSON-able; what else must be the same.
        resume: Whether a run that stands there is to be gone on with.

    Raises:
        FileExistsError: if there is a run and ``resume`` is not set, or anything else that is not
            the unfinished preparation of a run.
        NotADirectoryError: if ``run_dir`` is a file.
        ConfigError: if the settings differ; names the first that does.
    """
    if run_dir.exists() and not run_dir.is_dir():
        raise NotADirectoryError(
            f"{run_dir} is a file, and a run (--output) is a directory. Give the name of a new or "
            "an empty one."
        )
    if is_recorded(run_dir):
        if not resume:
            raise FileExistsError(
                f"{run_dir} holds a training run already. Add --resume to go on with it, or choose "
                "another directory."
            )
        _check_same(run_dir / RUN_FILE, config, origin)
        return
    if (run_dir / CONFIG_NAME).exists():
        raise FileExistsError(f"{run_dir} holds a model already. Choose another directory.")
    run_dir.mkdir(parents=True, exist_ok=True)
    foreign = sorted(path.name for path in run_dir.iterdir() if not path.name.startswith("."))
    if foreign and not (run_dir / MARK).exists():
        raise FileExistsError(
            f"{run_dir} is not empty (it holds {foreign[0]!r}) and is no training run. Choose a "
            "new or an empty directory."
        )
    (run_dir / MARK).touch()


@contextmanager
def exclusive_lock(run_dir: Path) -> Iterator[None]:
    """Keep other processes from training in this directory, as long as this one does.

    Two that write checkpoints and log of one run would leave neither's.

    Raises:
        FileExistsError: if another process trains there.
    """
    lock = FileLock(run_dir / LOCK, fallback_to_soft=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise FileExistsError(
            f"Another process trains in {run_dir}. Wait for it, or stop it with `kill` (if it "
            "trains, it writes a checkpoint first), and go on with --resume."
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        log.warning("%s cannot be locked (%s): start no second run in it", run_dir, error)
    try:
        yield
    finally:
        lock.release()  # the file stays: who removes it lets two others hold two files of that name


def record_run(run_dir: Path, config: Any, origin: Mapping[str, Any]) -> None:
    """Write ``run.json`` of a run that is ready to train, unless it stands there already.

    Args:
        run_dir: Of the run.
        config: As `open_run` took it.
        origin: As `open_run` took it.
    """
    if not is_recorded(run_dir):
        record = {"elmokit_version": elmokit.__version__, "config": to_dict(config), **origin}
        write_json(run_dir / RUN_FILE, record)
    (run_dir / MARK).unlink(missing_ok=True)


def absolute_paths(paths: Sequence[Path]) -> list[str]:
    """Return paths, or patterns, as they are recorded: the same from every working directory."""
    return [str(path if path == STANDARD_INPUT else path.resolve()) for path in paths]


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all."""
    with atomic_file(path) as temp_path:
        temp_path.write_text(json.dumps(dict(data), indent=2), encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file of a run.

    Raises:
        FormatError: if it is damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(
            f"{path}: damaged: {error}. The run cannot be resumed; start a new one in another "
            "directory."
        ) from error


def publish_best(run_dir: Path) -> None:
    """Put the best model's files into the run directory and remove ``best/``.

    ``best/`` is whole until all of them are there, so a kill on the way loses nothing; and
    ``config.json``, by which a model directory is known, comes last.
    """
    best = run_dir / BEST
    for path in sorted(best.iterdir(), key=lambda path: path.name == CONFIG_NAME):
        with atomic_file(run_dir / path.name) as temp_path:
            shutil.copyfile(path, temp_path)
    done = run_dir / f".removing-{BEST}"
    shutil.rmtree(done, ignore_errors=True)  # left by a run that was killed here
    best.rename(done)
    shutil.rmtree(done)


def _check_same(run_file: Path, config: Any, origin: Mapping[str, Any]) -> None:
    """Raise for the first fixed setting that differs from the run to be resumed; log the others."""
    record = read_json(run_file)
    # settings that are newer than the run have their defaults
    saved = _flat(to_dict(from_dict(type(config), record["config"], source=str(run_file))))
    given = _flat(to_dict(config))
    for key in sorted({*saved, *given}):
        if saved.get(key) == given.get(key):
            continue
        if any(f"{key}.".startswith(f"{fixed}.") for fixed in FIXED_SETTINGS):
            raise _differs(run_file, key, saved.get(key), given.get(key))
        log.info("%s was %r and is now %r", key, saved.get(key), given.get(key))
    for key, value in origin.items():
        if key in record and _comparable(key, record[key]) != _comparable(key, value):
            raise _differs(run_file, key, record[key], value)


def _flat(settings: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return nested settings by dotted name."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{path}{key}.") if isinstance(value, dict) else {path + key: value}
    return flat


def _comparable(key: str, value: Any) -> Any:
    """Leave out what may differ: how a path is written, where the model was found."""
    if key == "model":
        return value["hash"]
    return absolute_paths([Path(path) for path in value]) if isinstance(value, list) else value


def _differs(run_file: Path, key: str, saved: Any, given: Any) -> ConfigError:
    return ConfigError(
        f"{run_file}: this run has {key}={saved!r}, the command says {given!r}. Resume with what "
        "the run began with, or start a new one in another directory."
    )
