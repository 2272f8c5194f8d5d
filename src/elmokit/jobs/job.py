"""A job: a long piece of work in a directory of its own; its log, and signals that stop it.

`open_job` takes the directory, locks it and compares what is recorded there. The job then saves
pieces, such as checkpoints, each of them complete or absent. A kill at any moment leaves the last
whole piece, from which the same command with ``--resume`` goes on.

``--resume`` means the same everywhere: go on if the directory holds this job, start if it holds
none, refuse everything else and say what differs. Without it, a directory with a job is refused.
"""

import json
import logging
import os
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from elmokit.errors import ElmokitError, FormatError, Stopped, quoted
from elmokit.files.atomic import atomic_file, named, no_room, previous_of
from elmokit.files.json_files import jsonable, parse_json, read_json, write_json
from elmokit.files.temporary import exclusive_directory, remove_whole
from elmokit.jobs.identity import Identity
from elmokit.version import __version__

METRICS_FILE = "metrics.jsonl"


class MetricsLog:
    """Append rows to the ``metrics.jsonl`` of a directory.

    Rows after ``resume_step``, the step of the checkpoint to resume from, are dropped first,
    because the job repeats them; 0 starts a new file.
    """

    def __init__(self, directory: Path, *, resume_step: int = 0) -> None:
        self.path = directory / METRICS_FILE
        rows = read_log(self.path) if resume_step else []
        content = "".join(_line(row) for row in rows if row["step"] <= resume_step).encode()
        if self.path.exists() and self.path.read_bytes() == content:
            return  # so that its time stays that of the last row
        with atomic_file(self.path) as temp_path:
            temp_path.write_bytes(content)

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one row; it must have ``step``. What is not finite is null."""
        with named(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(_line(row))
            file.flush()
            os.fsync(file.fileno())  # the checkpoint after it must not be newer than the log


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(jsonable(row)) + "\n"


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a log, without a last line that was cut off by a kill."""
    if not path.exists():
        return []
    *lines, last = path.read_bytes().split(b"\n")
    if lines and not last:
        last = lines.pop()
    rows = []
    for number, line in enumerate((*lines, last), start=1):
        where, advice = f"{path}, line {number}", "Remove the line, or start a new run."
        try:
            row = parse_json(line, source=where, advice=advice, required=["step"])
        except FormatError:
            if number <= len(lines):
                raise
            break
        if type(row["step"]) is not int:
            raise FormatError(f"{where}: `step` must be a whole number. {advice}")
        rows.append(row)
    return rows


log = logging.getLogger(__name__)

RUN_FILE = "run.json"
"""What the job in a directory is; its table ``config`` holds the settings."""
MARK = ".elmokit-run"
"""Marks a directory in which a job prepares its inputs; holds the name of the command."""
CHECKPOINTS = "checkpoints"
NOT_RESUMABLE = "The run cannot be resumed; start a new one in another directory."
"""Advice for damaged files of a run."""


@dataclass(frozen=True)
class Pieces:
    """Files or directories with numbered names, in the order of the work."""

    folder: Path
    prefix: str = "step-"

    def paths(self) -> list[Path]:
        """Return all pieces, oldest first, with one whose replacement a kill cut short."""
        by_name = {path.name: path for path in self.folder.glob(f"{self.prefix}*")}
        for path in self.folder.glob(previous_of(self.folder / f"{self.prefix}*").name):
            by_name.setdefault(path.name.removeprefix(".").removesuffix(".previous"), path)
        return [by_name[name] for name in sorted(by_name)]

    @property
    def latest(self) -> Path | None:
        """The newest piece, if there is one."""
        return next(reversed(self.paths()), None)

    def remove(self, *, newest_kept: int = 0) -> None:
        """Remove all pieces but the newest ones."""
        paths = self.paths()
        for path in paths[: max(0, len(paths) - newest_kept)]:
            if path.is_dir():
                remove_whole(path)
            else:
                path.unlink()

    def tidy(self) -> None:
        """Give an old piece its name back, and remove what killed jobs left half-written."""
        for path in self.paths():
            if path.name.startswith("."):
                path.rename(self.folder / path.name.removeprefix(".").removesuffix(".previous"))
        for path in self.folder.glob(f".{self.prefix}*"):  # written on any machine
            shutil.rmtree(path, ignore_errors=True)  # another process may still read it


def checkpoints_of(run_dir: Path) -> Pieces:
    """Return the checkpoints of a training, oldest first."""
    return Pieces(run_dir / CHECKPOINTS)


@dataclass
class Job:
    """A job whose directory is held; use `open_job`."""

    directory: Path
    command: str
    identity: Identity
    pieces: Pieces
    result_name: str
    record: dict[str, Any] = field(default_factory=dict)
    """What is recorded; empty before the job has begun."""

    def prepare(self) -> None:
        """Mark the directory as this command's before its inputs are ready."""
        if not self.record:
            (self.directory / MARK).write_text(self.command, encoding="utf-8")

    def begin(self, **more: Any) -> None:
        """Record what the job is, and more about it; only the same job now goes on here.

        A resumed job keeps its first record; entries of ``more`` replace those of the same name.
        """
        made = {"elmokit_version": __version__, "command": self.command}
        record = (self.record or made | self.identity.record()) | more
        if record != self.record:
            write_json(self.directory / RUN_FILE, record)
            self.record = record
        (self.directory / MARK).unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove the record and all pieces; prepared inputs stay, marked."""
        was_begun, self.record = bool(self.record), {}
        if not self.directory.exists():  # somebody removed it meanwhile
            return
        self.pieces.remove()
        with suppress(OSError):
            self.pieces.folder.rmdir()
        for name in (METRICS_FILE, RUN_FILE):
            (self.directory / name).unlink(missing_ok=True)
        if was_begun and _visible(self.directory):
            self.prepare()

    def take(self, *, resume: bool, overwrite: bool) -> None:
        """Check that the job may begin or go on in the directory."""
        directory, advice = self.directory, "or choose another directory"
        holder = command_of(directory)
        if holder not in (None, self.command):
            raise FileExistsError(
                f"{directory} holds a run of `elmokit {holder}`, which `elmokit {self.command}` "
                f"neither continues nor replaces. Continue it with `elmokit {holder} … -o "
                f"{quoted(directory)} --resume`, {advice}."
            )
        if not is_begun(directory):
            others = _visible(directory)
            if others and not (directory / MARK).exists():
                raise FileExistsError(
                    f"{directory} is not empty (it holds {others[0]!r}) and holds no job of "
                    "elmokit. Choose a new or an empty directory."
                )
            return
        self.record = _read_record(directory)
        if overwrite:
            self.forget()
            return
        if not resume:
            raise FileExistsError(
                f"{directory} already holds this job. Add --resume to continue it, {advice}."
            )
        advice = f"Resume with the job's own settings and files, {advice}."
        self.identity.refuse_changes(self.record, directory / RUN_FILE, advice)
        has_result = bool(self.result_name) and (directory / self.result_name).exists()
        if self.pieces.latest is None and has_result:
            raise FileExistsError(
                f"{directory} holds a finished result, but nothing in {self.pieces.folder} to "
                "go on from. Use the result as it is, or choose another directory."
            )
        if self.pieces.latest is None:
            log.warning("nothing saved in %s: starting from the beginning", directory)

    def end_early(self, error: BaseException, *, overwrite: bool) -> None:
        """Say what is safe; a job that has saved nothing leaves no record to stumble over."""
        latest = self.pieces.latest
        if latest is not None:
            how = "the same command with --resume continues from it"
            if isinstance(error, ElmokitError):
                how = "once this is corrected, --resume continues from it"
            elif overwrite:
                how = how.replace("--resume", "--resume instead of --overwrite")
            error.add_note(f"{latest} is complete; {how}.")
        elif not (self.result_name and (self.directory / self.result_name).exists()):
            self.forget()
            if isinstance(error, KeyboardInterrupt) or no_room(error) is not None:
                error.add_note("Nothing of the job is saved yet: the same command starts over.")


@contextmanager
def open_job(
    directory: Path,
    command: str,
    identity: Identity,
    *,
    resume: bool,
    overwrite: bool = False,
    pieces: Pieces | None = None,
    result_name: str = "",
) -> Iterator[Job]:
    """Hold a directory, which is made if necessary, for a job that is new or to be resumed.

    ``overwrite`` removes an earlier job, whatever it was. ``pieces`` are what the job saves (none:
    checkpoints), ``result_name`` the file that tells a finished result, which only pieces let go
    on. After an error the directory is as it was if nothing of the job was saved.
    """
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(
            f"{directory} is a file, but a job (--output) needs a directory: a new or an empty one."
        )
    busy = (
        f"Another process works in {directory}. Wait for it, or stop it with `kill` (what it has "
        "finished is saved), and continue with --resume."
    )
    pieces = checkpoints_of(directory) if pieces is None else pieces
    with exclusive_directory(directory, busy=busy):
        job = Job(directory, command, identity, pieces, result_name)
        job.take(resume=resume, overwrite=overwrite)
        try:
            yield job
        except BaseException as error:
            job.end_early(error, overwrite=overwrite)
            raise
        finally:
            if not job.record and job.pieces.latest is None and not _visible(directory):
                (directory / MARK).unlink(missing_ok=True)


def _visible(directory: Path) -> list[str]:
    """Return the names of files that are not hidden."""
    names = os.listdir(directory) if directory.exists() else []
    return sorted(name for name in names if not name.startswith("."))


def is_begun(directory: Path) -> bool:
    """Tell whether a job is recorded in a directory: its inputs are ready."""
    return (directory / RUN_FILE).exists()


def command_of(directory: Path) -> str | None:
    """Return the command whose job is in a directory; None if none is, or it does not say."""
    mark = directory / MARK
    if is_begun(directory):
        return _read_record(directory).get("command")
    return (mark.read_text(encoding="utf-8") or None) if mark.is_file() else None


def _read_record(directory: Path) -> dict[str, Any]:
    path = directory / RUN_FILE
    record = read_json(path, advice=NOT_RESUMABLE, required=("config",))
    if not isinstance(record["config"], dict):
        raise FormatError(f"{path}: `config` must be a table of settings. {NOT_RESUMABLE}")
    return record


SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


@dataclass
class StopRequest:
    """A request to stop, made by a signal."""

    signal_number: int | None = None
    """The first signal that came; none so far: no request."""

    def stopped(self, where: str) -> Stopped:
        """Return the exception that ends the job, once its state is saved."""
        # In other processes of a training than the first, perhaps no signal has come.
        number = self.signal_number or signal.SIGTERM
        return Stopped(f"stopped by {signal.Signals(number).name} {where}.", signal_number=number)


@contextmanager
def stop_requests(wanted: bool, *, second_stops_at_once: bool = True) -> Iterator[StopRequest]:
    """Note `SIGNALS` and say so, instead of obeying them.

    Nothing is noted unless ``wanted``, nor outside the main thread. Ignored signals stay ignored
    (as SIGHUP is under `nohup`), and those that a C library handles are left to it.
    ``second_stops_at_once`` obeys a second Ctrl-C; not for `torchrun`, which repeats the first.
    """
    request = StopRequest()

    def note(number: int, frame: FrameType | None) -> None:
        if request.signal_number is None:
            request.signal_number = number
            again = " (Ctrl-C again: stop at once, without one)" if second_stops_at_once else ""
            # in another thread: this one may be in the middle of a log line
            text = "stopping after this update, with a checkpoint%s"
            threading.Thread(target=log.info, args=(text, again), daemon=True).start()
        elif second_stops_at_once and number == signal.SIGINT:
            raise KeyboardInterrupt

    in_main_thread = threading.current_thread() is threading.main_thread()
    before = {
        number: signal.signal(number, note)
        for number in (SIGNALS if wanted and in_main_thread else ())
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
