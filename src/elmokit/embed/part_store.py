"""The finished part of an embedding job, safe against a kill at any moment.

The directory ``OUT.parts`` holds a file for each block of finished sentences, complete or absent:
``part-FIRST-END.npz`` has the sentences FIRST to END - 1 of the job. ``job.json`` describes the
job; only the same job may continue with the parts.
"""

import json
import logging
import shutil
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
from elmokit.embed.writers.block import Block
from elmokit.errors import FormatError, InputError
from elmokit.files.arrays import Archive, open_archive
from elmokit.files.atomic import atomic_file
from elmokit.files.changes import changes
from elmokit.files.json_files import read_json, write_json

logger = logging.getLogger(__name__)

_DAMAGE = (OSError, ValueError, TypeError, AttributeError, LookupError, RuntimeError)
"""What contents of another kind than expected raise."""


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

    settings: dict[str, Any]
    replaces: tuple[int, int] | None


class PartStore:
    """The directory of parts of one job: ``OUT.parts``."""

    def __init__(self, directory: Path) -> None:
        self.directory, self._job_path = directory, directory / "job.json"

    @property
    def exists(self) -> bool:
        """Whether an earlier run left anything."""
        return self.directory.exists()

    def start(self, settings: Mapping[str, Any], *, output: Path) -> None:
        """Start a job without parts; it will replace ``output`` if that exists."""
        self.remove()
        self.directory.mkdir(parents=True)
        write_json(self._job_path, {"settings": settings, "replaces": _identity(output)})

    def is_finished(self, output: Path) -> bool:
        """Return whether ``output`` is finished, not an older file to be replaced."""
        if not output.exists():
            return False
        return not self._job_path.exists() or self._read_job()["replaces"] != _identity(output)

    def resume(self, settings: Mapping[str, Any], *, output: Path) -> None:
        """Continue or start the job and remove unusable files; `InputError` for another job's."""
        if not self._job_path.exists():  # no earlier run, or killed before it started
            self.start(settings, output=output)
            return
        check_same_job(self._read_job()["settings"], settings, where=str(self.directory))
        usable = {part.path for part in self.parts()}
        for file in self.directory.iterdir():
            if file not in usable and file != self._job_path:
                logger.info("%s is incomplete or follows a gap: its sentences are redone", file)
                file.unlink()

    def _read_job(self) -> dict[str, Any]:
        advice = "Start over with --overwrite."
        job = read_json(self._job_path, advice=advice, required=("settings", "replaces"))
        parse_record(_Job, known_part(_Job, job), source=self._job_path, advice=advice)
        return job

    def remove(self) -> None:
        """Remove the directory and all parts."""
        if self.exists:
            shutil.rmtree(self.directory)

    def parts(self) -> list[Part]:
        """Return the parts, in order, up to the first gap."""
        found = {}
        for path in self.directory.glob("part-*-*.npz"):
            first, end = (int(number) for number in path.stem.split("-")[1:])
            found[first] = Part(path, first, end)
        parts: list[Part] = []
        while (first := parts[-1].end if parts else 0) in found:
            parts.append(found[first])
        return parts

    def add(self, first: int, block: Block, state: BiLMState | None) -> None:
        """Store a block whose first sentence is number ``first``, and the state after it."""
        texts = json.dumps([block.texts, block.tokens])
        arrays: dict[str, np.ndarray] = {
            "values": np.concatenate([vectors.reshape(-1) for vectors in block.vectors]),
            "shapes": np.array([vectors.shape for vectors in block.vectors], dtype=np.int64),
            "indices": np.array(block.indices, dtype=np.int64),
            "sentences": np.frombuffer(texts.encode("ascii"), dtype=np.uint8),
        }
        if state is not None:
            arrays["hidden"] = state.hidden.cpu().numpy()
            arrays["cell"] = state.cell.cpu().numpy()
        name = f"part-{first:012d}-{first + len(block.indices):012d}.npz"
        with atomic_file(self.directory / name) as temp_path, temp_path.open("wb") as file:
            np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]

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
                except OSError as failed:
                    error.add_note(f"The last sentences could not be written either: {failed}")
                raise
            writer.wait()

    def texts(self) -> Iterator[tuple[int, str]]:
        """Yield index and line of every finished sentence."""
        for part in self.parts():
            with _opened(part) as file:
                texts, _ = _from_bytes(file["sentences"])
                indices = file["indices"].tolist()
            yield from zip(indices, texts, strict=True)

    def blocks(self) -> Iterator[Block]:
        """Yield the contents of the parts, in order; raise `FormatError` for a damaged one."""
        for part in self.parts():
            with _opened(part) as file:
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
        for part in self.parts():
            with _opened(part) as file:
                total += int(file["shapes"][:, -2].sum())
        return total

    def last_state(self) -> BiLMState | None:
        """Return the LSTM state after the last finished sentence, if states are kept."""
        parts = self.parts()
        if not parts:
            return None
        with _opened(parts[-1]) as file:
            if "hidden" not in file:
                return None
            return BiLMState(torch.from_numpy(file["hidden"]), torch.from_numpy(file["cell"]))


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


@contextmanager
def _opened(part: Part) -> Iterator[Archive]:
    """Open a part; raise `FormatError` if it is damaged."""
    try:
        with open_archive(part.path, advice="") as arrays:
            yield arrays
    except _DAMAGE as error:
        raise FormatError(
            f"{part.path}: damaged: {error}. Remove this file and run the command again with "
            "--resume; its sentences and those after them are embedded again."
        ) from error


def _from_bytes(array: np.ndarray) -> Any:
    return json.loads(array.tobytes())


def _identity(path: Path) -> list[int] | None:
    """Return size and time of a file, to tell it from a replacement."""
    if not path.exists():
        return None
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]
