"""Text files to one embedding file: streamed, resumable, optionally split over machines."""

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.embed.formats.block import Block
from elmokit.embed.formats.registry import (
    HDF5_SUFFIXES,
    OutputFormat,
    read_metadata,
    write_embeddings,
)
from elmokit.embed.numbered_lines import LineShare, NumberedLines, OwnLines
from elmokit.embed.options import EmbedOptions
from elmokit.embed.part_store import PartStore
from elmokit.errors import FormatError, InputError, counted, shown
from elmokit.files.atomic import atomic_file, check_target
from elmokit.files.sources import Paths
from elmokit.files.temporary import remove_leftovers
from elmokit.inference.results import LSTMState
from elmokit.jobs.identity import Identity
from elmokit.jobs.job import open_job

logger = logging.getLogger(__name__)

PART_BYTES = 2**25
"""Vectors held in memory before they are written: 32 MB."""
PART_SENTENCES = 4096
"""Sentences held in memory before they are written, however short."""
_COUNTS = ("num_sentences", "num_words")
_TEXT_HASH = "text_sha256"

OnProgress = Callable[[int, int | None, str], object]
"""(bytes of text done, total if known, short status)."""
_Row = tuple[int, str, list[str], np.ndarray]
"""Index, text, words and vectors of a line."""


@dataclass(frozen=True, kw_only=True)
class EmbedReport:
    output: Path | str
    """A string for an address."""
    sentences: int
    """In the file."""
    words: int
    """In the file."""
    resumed_sentences: int
    """Finished by an earlier run."""
    seconds: float
    """Duration of this run, without loading the model."""
    words_per_second: float
    """In this run."""
    metadata: dict[str, Any]
    """How the vectors were made, as in the file."""


def embed_files(
    embedder: Embedder,
    texts: Paths,
    output: str | os.PathLike[str],
    options: EmbedOptions | None = None,
    *,
    on_progress: OnProgress | None = None,
) -> EmbedReport:
    """Embed text files, one sentence per line, into one file.

    Finished sentences go to ``OUTPUT.parts`` block by block and are merged at the end, so the disk
    needs room for the vectors twice. An interrupted job continues with ``resume``. Memory does not
    depend on the number of lines.

    Line *i* of all ``texts`` together, from 0, has key *i*; a blank line is an empty sentence. The
    suffix of ``output`` sets the format (`elmokit.embed.formats.registry`); each shard needs its
    own output.

    An existing output or job is refused unless ``resume`` or ``overwrite`` is set, and ``resume``
    refuses another job or text.
    """
    options = options or EmbedOptions()
    return embed_lines(OwnLines(embedder, options), texts, output, options, on_progress=on_progress)


def output_paths(path: Path) -> list[Path]:
    """Return where a job with this output writes, which is no text."""
    return [path, _parts_of(path)]


def _parts_of(path: Path) -> Path:
    return path.with_name(path.name + ".parts")


def embed_lines(
    embedder: Any,
    texts: Paths,
    output: str | os.PathLike[str],
    options: EmbedOptions,
    *,
    on_progress: OnProgress | None = None,
) -> EmbedReport:
    """Do the work of `embed_files` with whatever computes as `OwnLines` does."""
    path = Path(output)
    output_format = options.check(path, num_layers=embedder.num_layers)
    metadata = embedder.metadata()
    text = NumberedLines(
        texts,
        exclude=output_paths(path),
        id_field=options.id_field,
        text_field=options.text_field,
        keys_are_paths=path.suffix.lower() in HDF5_SUFFIXES,
    )
    if text.keys is not None:
        metadata["keys"] = options.id_field or "FASTA"
        if options.file_format != "elmokit":
            raise InputError(
                f"Files of the format {options.file_format} have numbers as keys, not ids: use "
                "the format elmokit."
            )
    may_replace = options.resume or options.overwrite
    check_target(path, inputs=text.files, overwrite=may_replace)
    parts = PartStore(_parts_of(path))
    with open_job(
        parts.folder, "embed", Identity(metadata), resume=options.resume,
        overwrite=options.overwrite, pieces=parts,
    ) as job:  # fmt: skip
        check_target(path, inputs=text.files, overwrite=may_replace)  # another may have finished
        for folder in (path.parent, parts.folder):
            remove_leftovers(folder)
        work = _Embedding(embedder, text, LineShare(text, *options.shard), path, parts, metadata)
        is_finished = not job.record or job.record.get("finished")
        if options.resume and path.exists() and is_finished:
            report = work.already_done()
        else:
            job.begin()
            report = work.run(output_format, on_progress or (lambda *_: None))
            # said before the parts go: a kill among them must not look like a job half done
            job.begin(finished=True)
        job.forget()
        return report


def _block(rows: list[_Row]) -> Block:
    indices, texts, words, vectors = map(list, zip(*rows, strict=True)) if rows else ([],) * 4
    return Block(indices, texts, words, vectors)


@dataclass
class _Embedding:
    embedder: Any
    text: NumberedLines
    lines: LineShare
    path: Path
    parts: PartStore
    metadata: dict[str, Any]
    num_words: int = 0
    """In the finished sentences."""
    started: float = field(default_factory=time.monotonic)

    def already_done(self) -> EmbedReport:
        """Report on a complete output, after checking that it is from this job and this text."""
        stored = read_metadata(self.path)
        counts = [stored.pop(name, 0) for name in _COUNTS]
        text_hash = stored.pop(_TEXT_HASH, None)
        advice = "Repeat the original command, or start over with --overwrite."
        Identity(self.metadata).refuse_changes({"config": stored}, self.path, advice)
        # the hash is that of all lines, which have to be read
        for _ in self.lines:
            pass
        if text_hash != self.lines.sha256():
            raise InputError(
                f"{self.path} was made from another text: it has {counts[0]:,} lines, and this one "
                f"{self.lines.count:,}. {advice}"
            )
        logger.info("%s is already complete", self.path)
        return self._report(counts[0], counts[1], resumed=counts[0], new_words=0)

    def run(self, output_format: OutputFormat, on_progress: OnProgress) -> EmbedReport:
        """Embed the remaining lines, then merge the parts."""
        self.parts.drop_after_gap()
        resumed = self._skip_finished()
        resumed_words = self.num_words
        self._embed(resumed, on_progress)
        on_progress(self.text.num_bytes, None, f"writing {self.path.name}")
        sentences = self.parts.num_sentences
        if not self.lines.count and not self.text.num_bytes:
            names = ", ".join(str(path) for path in self.text.files)
            raise FormatError(f"{names}: no line to embed. Give files with one sentence per line.")
        if sentences != self.lines.count:
            raise self.parts.removed(sentences, self.lines.count)
        counts = dict(zip(_COUNTS, (sentences, self.num_words), strict=True))
        with atomic_file(self.path) as temp_path:
            write_embeddings(
                temp_path,
                self._blocks(),
                output_format=output_format,
                metadata=self.metadata | {_TEXT_HASH: self.lines.sha256()} | counts,
                num_bytes=sum(path.stat().st_size for path in self.parts.paths()),
            )
        new_words = self.num_words - resumed_words
        return self._report(sentences, self.num_words, resumed=resumed, new_words=new_words)

    def _skip_finished(self) -> int:
        """Read and compare the finished lines; return their number."""
        count = 0
        for index, text, num_words in self.parts.texts():
            line = next(self.lines, None)
            if line != (index, text):
                now = "the text ends before it" if line is None else f"it is now {shown(line[1])}"
                raise InputError(
                    f"The text has changed. Line {index + 1} was {shown(text)} when it was "
                    f"embedded, {now}. Give the same files in the same order, or --overwrite."
                )
            count += 1
            self.num_words += num_words
        return count

    def _embed(self, first: int, on_progress: OnProgress) -> None:
        """Embed and store the remaining lines; ``first`` is the number of the next one."""
        pending: deque[tuple[int, str]] = deque()

        def lines() -> Iterator[str]:
            for index, text in self.lines:
                pending.append((index, text))
                yield text

        # the embedder reads some lines ahead, so texts wait here for their vectors
        stream = self.embedder.stream(lines(), initial_state=self.parts.last_state())
        total_bytes, words_before = self.text.total_bytes, self.num_words
        rows: list[_Row] = []
        last: tuple[int, LSTMState | None] = (0, None)  # rows so far and the state after them
        num_bytes = 0
        with closing(stream):
            try:
                for words, vectors, state in stream:
                    rows.append((*pending.popleft(), words, vectors))
                    last = (len(rows), state)  # at once: Ctrl-C may come between any two lines
                    num_bytes += vectors.nbytes
                    self.num_words += len(words)
                    if num_bytes >= PART_BYTES or len(rows) >= PART_SENTENCES:
                        self.parts.add(first, _block(rows), state)
                        first, rows, last, num_bytes = first + len(rows), [], (0, None), 0
                    seconds = max(time.monotonic() - self.started, 1e-9)
                    speed = (self.num_words - words_before) / seconds
                    status = f"{counted(first + len(rows), 'sentence')}, {speed:,.0f} words/s"
                    on_progress(self.text.num_bytes, total_bytes, status)
            except OSError:
                raise  # the disk may be full
            except BaseException:  # a bad line or Ctrl-C: keep what was computed before
                if first == self.parts.num_sentences:  # else these rows were just written
                    self.parts.add(first, _block(rows[: last[0]]), last[1])
                raise
            self.parts.add(first, _block(rows), last[1])

    def _blocks(self) -> Iterator[Block]:
        """Yield what is written: the parts with their keys."""
        keys = self.text.keys
        for block in self.parts.blocks():
            names = None if keys is None else [keys[index] for index in block.indices]
            yield replace(block, keys=names)

    def _report(self, sentences: int, words: int, *, resumed: int, new_words: int) -> EmbedReport:
        seconds = time.monotonic() - self.started
        return EmbedReport(
            output=self.path, sentences=sentences, words=words, resumed_sentences=resumed,
            seconds=seconds, words_per_second=new_words / max(seconds, 1e-9),
            metadata=self.metadata | {_TEXT_HASH: self.lines.sha256()},
        )  # fmt: skip
