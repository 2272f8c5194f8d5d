"""The finished part of an embedding job, safe against a kill at any moment.

The directory ``OUT.parts`` holds a file for each block of finished sentences, complete or absent:
``part-FIRST-END.npz`` has the sentences FIRST to END - 1 of the job. ``job.json`` describes the
job; only the same job may continue with the parts, each of which names it. One process at a time
holds the directory.
"""

import json
import logging
import re
import secrets
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmokit.bilm.bilm import BiLMState
from elmokit.config import known_part, parse_record
from elmokit.embed.formats.block import Block
from elmokit.errors import FormatError, InputError
from elmokit.files.arrays import Archive, open_archive
from elmokit.files.atomic import atomic_file
from elmokit.files.damage import damage
from elmokit.files.json_files import read_json, write_json
from elmokit.files.locks import held_directory
from elmokit.jobs.identity import changes

logger = logging.getLogger(__name__)

_JOB_NAME = "job.json"
_PART_NAME = re.compile(r"part-(\d{12,})-(\d{12,})\.npz")
_PART_ARRAYS = ("job", "values", "shapes", "indices", "sentences")


@dataclass(frozen=True)
class Part:
    """One file of finished sentences."""

    path: Path
    first: int
    """Number of its first sentence within the job."""
    end: int
    """Number of its last sentence + 1."""


@dataclass(frozen=True, kw_only=True)
class _Job:
    """``job.json``."""

    id: str
    settings: dict[str, Any]
    replaces: tuple[int, int] | None


class PartStore:
    """The directory of parts of one job: ``OUT.parts``; files of others in it are left alone."""

    def __init__(self, directory: Path) -> None:
        self.directory, self._job_path = directory, directory / _JOB_NAME
        self.parts: list[Part] = []
        """Finished in this run, or by the runs that it continues, in order and without gap."""
        self._job_id = ""

    @property
    def exists(self) -> bool:
        """Whether an earlier run left anything."""
        return self._job_path.exists() or any(map(_part_of, self._part_files()))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the directory, which is made; at the end it is removed if it is empty.

        Raises:
            FileExistsError: if another process holds it.
        """
        busy = (
            f"Another process writes to {self.directory}. Wait for it, stop it with `kill`, or "
            "give another output."
        )
        with held_directory(self.directory, busy=busy):
            yield

    def start(self, settings: Mapping[str, Any], *, output: Path) -> None:
        """Start a job without parts; it will replace ``output`` if that exists."""
        self.remove()
        self._job_id = secrets.token_hex(16)
        job = {"id": self._job_id, "settings": settings, "replaces": _identity(output)}
        write_json(self._job_path, job)

    def is_finished(self, output: Path) -> bool:
        """Return whether ``output`` is finished, not an older file to be replaced."""
        if not output.exists():
            return False
        return not self._job_path.exists() or self._read_job()["replaces"] != _identity(output)

    def resume(self, settings: Mapping[str, Any], *, output: Path) -> None:
        """Continue or start the job; remove the parts that follow a gap.

        Raises:
            InputError: for the parts of another job, or a file with the name of a part that is
                none; nothing is removed then.
            FormatError: if ``job.json`` is not that of a job.
            OSError: if a part cannot be opened.
        """
        if not self._job_path.exists():  # no earlier run, or killed before it started
            self.start(settings, output=output)
            return
        job = self._read_job()
        check_same_job(job["settings"], settings, where=str(self.directory))
        self._job_id = job["id"]
        found = self._own_parts()
        by_first = {part.first: part for part in found}
        self.parts = []
        while (part := by_first.get(self.num_sentences)) is not None:
            self.parts.append(part)
        for part in set(found) - set(self.parts):
            logger.info("there is a gap before %s: its sentences are computed again", part.path)
            part.path.unlink()

    def _read_job(self) -> dict[str, Any]:
        advice = f"Remove {self.directory} if nothing in it is needed, or give another output."
        job = read_json(self._job_path, advice=advice, required=("id", "settings", "replaces"))
        parse_record(_Job, known_part(_Job, job), source=self._job_path, advice=advice)
        return job

    def remove(self) -> None:
        """Remove the parts, then the job; refuse what is not of an `embed` job under such a name.

        Raises:
            FormatError: if ``job.json`` is not that of a job.
            InputError: for a file with the name of a part that is none.
        """
        if self._job_path.exists():
            self._read_job()
        for part in self._own_parts():
            part.path.unlink()
        self._job_path.unlink(missing_ok=True)
        self.parts = []

    def _part_files(self) -> list[Path]:
        """Return the files and links whose name is that of a part."""
        if not self.directory.is_dir():
            return []
        return [path for path in self.directory.iterdir() if _PART_NAME.fullmatch(path.name)]

    def _own_parts(self) -> list[Part]:
        """Return the parts by name; `InputError` for a file with such a name that is none."""
        parts: list[Part] = []
        for path in sorted(self._part_files()):
            if (part := _part_of(path)) is None:
                raise InputError(
                    f"{path} is damaged, or not a part that `elmokit embed` wrote: it was "
                    "not changed. Remove it or move it away, or give another output."
                )
            parts.append(part)
        return parts

    @property
    def num_sentences(self) -> int:
        """Number of finished sentences."""
        return self.parts[-1].end if self.parts else 0

    @property
    def num_safe(self) -> int:
        """Number of finished sentences that are still on disk, up to a gap."""
        end = 0
        for part in self.parts:
            if not part.path.is_file():
                break
            end = part.end
        return end

    def add(self, first: int, block: Block, state: BiLMState | None) -> None:
        """Store a block whose first sentence is number ``first``, and the state after it."""
        if not self._job_path.exists():
            raise self._changed(self._job_path)
        texts = json.dumps([block.texts, block.tokens])
        arrays: dict[str, np.ndarray] = {
            "job": np.frombuffer(self._job_id.encode("ascii"), dtype=np.uint8),
            "values": np.concatenate([vectors.reshape(-1) for vectors in block.vectors]),
            "shapes": np.array([vectors.shape for vectors in block.vectors], dtype=np.int64),
            "indices": np.array(block.indices, dtype=np.int64),
            "sentences": np.frombuffer(texts.encode("ascii"), dtype=np.uint8),
        }
        if state is not None:
            arrays["hidden"] = state.hidden.cpu().numpy()
            arrays["cell"] = state.cell.cpu().numpy()
        end = first + len(block.indices)
        path = self.directory / f"part-{first:012d}-{end:012d}.npz"
        try:
            with atomic_file(path) as temp_path, temp_path.open("wb") as file:
                np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]
        except FileNotFoundError as error:
            raise self._changed(path) from error
        self.parts.append(Part(path, first, end))

    @contextmanager
    def writer(self, first: int) -> Iterator["BlockWriter"]:
        """Open a writer of blocks from sentence ``first`` on; at the end all are on disk."""
        with ThreadPoolExecutor(1, thread_name_prefix="elmokit-write") as pool:
            writer = BlockWriter(self, first, pool)
            try:
                yield writer
            except BaseException as error:
                try:
                    writer.wait()
                except (OSError, FormatError) as failed:
                    error.add_note(f"The last sentences could not be written either: {failed}")
                raise
            writer.wait()

    def texts(self) -> Iterator[tuple[int, str]]:
        """Yield index and line of every finished sentence."""
        for part in self.parts:
            with self._opened(part) as file:
                texts, _ = _from_bytes(file["sentences"])
                lines = list(zip(file["indices"].tolist(), texts, strict=True))
            yield from lines

    def blocks(self) -> Iterator[Block]:
        """Yield the contents of the parts, in order; raise `FormatError` for a damaged one."""
        for part in self.parts:
            with self._opened(part) as file:
                texts, tokens = _from_bytes(file["sentences"])
                shapes = file["shapes"]
                ends = np.cumsum(shapes.prod(axis=1))
                pieces = np.split(file["values"], ends[:-1])
                vectors = [v.reshape(s) for v, s in zip(pieces, shapes, strict=True)]
                block = Block(file["indices"].tolist(), texts, tokens, vectors)
            yield block

    def num_words(self) -> int:
        """Count the words of the finished sentences."""
        total = 0
        for part in self.parts:
            with self._opened(part) as file:
                _, tokens = _from_bytes(file["sentences"])
            total += sum(map(len, tokens))
        return total

    def last_state(self) -> BiLMState | None:
        """Return the LSTM state after the last finished sentence, if states are kept."""
        if not self.parts:
            return None
        with self._opened(self.parts[-1]) as file:
            if "hidden" not in file:
                return None
            return BiLMState(torch.from_numpy(file["hidden"]), torch.from_numpy(file["cell"]))

    @contextmanager
    def _opened(self, part: Part) -> Iterator[Archive]:
        """Open a part; raise `FormatError` if it is damaged, gone, or of another job."""
        advice = (
            "Remove this file and run the command again with --resume; its sentences and those "
            "after them are embedded again."
        )
        try:
            with open_archive(part.path, advice=advice) as arrays, damage(part.path, advice):
                if arrays["job"].tobytes() != self._job_id.encode("ascii"):
                    raise self._changed(part.path)
                found = len(arrays["shapes"])
                if found != (expected := part.end - part.first):
                    raise ValueError(f"it has vectors of {found} of {expected} sentences")
                yield arrays
        except FileNotFoundError as error:
            raise self._changed(part.path) from error

    def _changed(self, path: Path) -> FormatError:
        return FormatError(
            f"{path} was removed or replaced while the job ran, so its sentences are lost. Run the "
            "command again with --resume: it embeds them, and keeps what is left. Nothing but "
            "`elmokit embed` may change that directory."
        )


class BlockWriter:
    """Stores blocks in order, each while the next one is computed."""

    def __init__(self, store: PartStore, first: int, pool: ThreadPoolExecutor) -> None:
        self._store, self._pool = store, pool
        self._underway: Future[None] | None = None
        self.end = first
        """Number of the next sentence."""

    def add(self, block: Block, state: BiLMState | None) -> None:
        """Start to write a block once the previous one is on disk, or raise its `OSError`."""
        self.wait()
        if block.indices:
            self._underway = self._pool.submit(self._store.add, self.end, block, state)
            self.end += len(block.indices)

    def wait(self) -> None:
        """Wait until the last block is on disk, or raise its `OSError`."""
        underway, self._underway = self._underway, None
        if underway is not None:
            underway.result()


def check_same_job(stored: Mapping[str, Any], settings: Mapping[str, Any], *, where: str) -> None:
    """Raise `InputError` with the differences unless two jobs have the same settings."""
    if found := changes(stored, settings):
        raise InputError(
            f"Cannot resume: {where} was made with other settings ({'; '.join(map(str, found))}). "
            "Repeat the original command, or start over with --overwrite."
        )


def _part_of(path: Path) -> Part | None:
    """Return the part that a file is, by name and by content; None if it is none or damaged."""
    name = _PART_NAME.fullmatch(path.name)
    if name is None or path.is_symlink() or not path.is_file():
        return None
    try:
        with open_archive(path, advice="") as file:
            is_part = all(array in file for array in _PART_ARRAYS)
    except FormatError:
        return None
    return Part(path, int(name[1]), int(name[2])) if is_part else None


def _from_bytes(array: np.ndarray) -> Any:
    return json.loads(array.tobytes())


def _identity(path: Path) -> list[int] | None:
    """Return size and time of a file, to tell it from a replacement."""
    if not path.exists():
        return None
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]
