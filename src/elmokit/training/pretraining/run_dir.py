"""The run directory: what it holds, and how a run is opened, resumed and closed.

``run.json`` is the resolved configuration, ``metrics.jsonl`` the log, ``checkpoints/`` what a
resumed run continues from and ``best/`` the best model so far. When the run ends, the best model's
files are put beside them, and the run directory is a model directory too. Until ``run.json`` is
written ``.elmokit-run`` marks the directory as one that was empty when the run took it. While a
process trains there it holds ``.elmokit-lock``, a file that stays; of a killed process the system
lets go.
"""

import errno
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

import elmokit
from elmokit.config import from_dict, to_dict
from elmokit.errors import ConfigError
from elmokit.files.atomic import atomic_file
from elmokit.files.changes import Change, changes
from elmokit.files.json_files import read_json, write_json
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

NOT_RESUMABLE = "The run cannot be resumed; start a new one in another directory."
"""What to do about damaged files of a run."""
_NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}
"""What file systems say that have no locks; some network file systems have none."""


def is_recorded(run_dir: Path) -> bool:
    """Whether a run has begun in the directory: its text is ready, its settings are written."""
    return (run_dir / RUN_FILE).exists()


def check_run(run_dir: Path, config: Any, origin: Mapping[str, Any], *, resume: bool) -> None:
    """Check that the directory can be taken, or that the run in it can be resumed.

    Args:
        run_dir: Of the run.
        config: A dataclass, of which `FIXED_SETTINGS` must be those of a run that is resumed.
        origin: JSON-able; what else must be the same.
        resume: Whether to resume a run that is there.

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
    if (run_dir / MARK).exists() or not run_dir.exists():
        return
    foreign = sorted(path.name for path in run_dir.iterdir() if not path.name.startswith("."))
    if foreign:
        raise FileExistsError(
            f"{run_dir} is not empty (it holds {foreign[0]!r}) and is no training run. Choose a "
            "new or an empty directory."
        )


def mark_run(run_dir: Path) -> None:
    """Make the directory, if necessary, and mark it as that of a run."""
    if not is_recorded(run_dir):
        run_dir.mkdir(parents=True, exist_ok=True)
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
    """Write ``run.json`` of a run that is ready to train, unless it is there already.

    Args:
        run_dir: Of the run.
        config: As `check_run` took it.
        origin: As `check_run` took it.
    """
    if not is_recorded(run_dir):
        record = {"elmokit_version": elmokit.__version__, "config": to_dict(config), **origin}
        write_json(run_dir / RUN_FILE, record)
    (run_dir / MARK).unlink(missing_ok=True)


def absolute_paths(paths: Sequence[Path]) -> list[str]:
    """Return paths, or patterns, as they are recorded: the same from every working directory."""
    return [str(path if path == STANDARD_INPUT else path.resolve()) for path in paths]


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
    record = read_json(run_file, advice=NOT_RESUMABLE, required=("config",))
    # settings that are newer than the run have their defaults
    saved = from_dict(type(config), record["config"], source=str(run_file))
    found = sorted(changes(to_dict(saved), to_dict(config)), key=lambda change: change.key)
    for change in found:
        if any(f"{change.key}.".startswith(f"{fixed}.") for fixed in FIXED_SETTINGS):
            raise _differs(run_file, change)
        log.info("%s", change)
    for key, value in origin.items():
        if key in record and _comparable(key, record[key]) != _comparable(key, value):
            raise _differs(run_file, Change(key, record[key], value))


def _comparable(key: str, value: Any) -> Any:
    """Leave out what may differ: how a path is written, where the model was found."""
    if key == "model":
        return value["hash"]
    return absolute_paths([Path(path) for path in value]) if isinstance(value, list) else value


def _differs(run_file: Path, change: Change) -> ConfigError:
    return ConfigError(
        f"{run_file}: {change}. Resume with what the run began with, or start a new one in "
        "another directory."
    )
