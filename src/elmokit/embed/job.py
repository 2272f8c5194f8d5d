"""Text files to one embedding file: streamed, resumable, optionally split over machines."""

import json
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.bilm.bilm import BiLMState
from elmokit.embed.embedder import Embedder
from elmokit.embed.formats.block import Block
from elmokit.embed.formats.registry import (
    HDF5_SUFFIXES,
    OutputFormat,
    read_metadata,
    write_embeddings,
)
from elmokit.embed.line_embedder import LineEmbedder, OwnLines
from elmokit.embed.numbered_lines import LineShare, NumberedLines
from elmokit.embed.options import EmbedOptions
from elmokit.embed.part_store import PartStore, check_same_job
from elmokit.embed.pooling import (
    SIF,
    common_direction,
    weighted_mean,
    without_common,
    word_probabilities,
)
from elmokit.errors import FormatError, InputError
from elmokit.files.atomic import atomic_file, check_target
from elmokit.files.hashing import text_sha256
from elmokit.files.location import counted, shown
from elmokit.files.sources import Paths, is_read_once
from elmokit.files.temporary import remove_leftovers
from elmokit.text.tokenizers.protocol import NormalizingTokenizer

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
    """The result of an embedding job."""

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

    Raises:
        FileExistsError: if the output or parts of it exist and neither ``resume`` nor ``overwrite``
            is set; if another process works on the same output.
        InputError: for an invalid option, if the output is one of the texts, and if ``resume``
            finds another job or another text.
        FormatError: for a line that cannot be read, if there is no line at all, and if finished
            sentences were removed while the job ran.
    """
    options = options or EmbedOptions()
    return embed_lines(OwnLines(embedder, options), texts, output, options, on_progress=on_progress)


def output_paths(path: Path) -> list[Path]:
    """Return where a job with this output writes, which is no text."""
    return [path, _parts_of(path)]


def _parts_of(path: Path) -> Path:
    return path.with_name(path.name + ".parts")


def embed_lines(
    embedder: LineEmbedder,
    texts: Paths,
    output: str | os.PathLike[str],
    options: EmbedOptions,
    *,
    on_progress: OnProgress | None = None,
) -> EmbedReport:
    """Do the work of `embed_files` with any `LineEmbedder`, which has the same options."""
    path = Path(output)
    output_format = options.check(path, num_layers=embedder.num_layers)
    metadata = embedder.metadata()
    lines = NumberedLines(
        texts,
        exclude=output_paths(path),
        id_field=options.id_field,
        text_field=options.text_field,
        keys_are_paths=path.suffix.lower() in HDF5_SUFFIXES,
    )
    if lines.keys is not None:
        metadata["keys"] = options.id_field or "FASTA"
        if options.file_format != "elmokit":
            raise InputError(
                f"Files of the format {options.file_format} have numbers as keys, not ids: use "
                "the format elmokit."
            )
    may_replace = options.resume or options.overwrite
    check_target(path, inputs=lines.files, overwrite=may_replace)
    store = PartStore(_parts_of(path))
    with store.held():
        check_target(path, inputs=lines.files, overwrite=may_replace)  # another may have finished
        if store.exists and not may_replace:
            raise FileExistsError(
                f"{store.directory} holds sentences of an unfinished job. Continue it with "
                "--resume, or start over with --overwrite."
            )
        probabilities: dict[str, float] = {}
        if options.pool == SIF:
            probabilities = _word_probabilities(lines, embedder.splitter)
            metadata["sif_words_sha256"] = text_sha256(json.dumps(sorted(probabilities.items())))
        share = lines.share(*options.shard)
        job = _Job(
            embedder, lines, share, path, store, output_format, metadata, probabilities,
            overwrite=options.overwrite,
        )  # fmt: skip
        for folder in (path.parent, store.directory):
            remove_leftovers(folder)
        if options.resume:
            if store.is_finished(path):
                return job.already_done()
            store.resume(metadata, output=path)
        else:
            store.start(metadata, output=path)
        return job.run(on_progress or (lambda *_: None))


def _word_probabilities(lines: NumberedLines, splitter: NormalizingTokenizer) -> dict[str, float]:
    """Read the text once before it is embedded, to count its words."""
    if any(map(is_read_once, lines.files)):
        raise InputError(
            'pool="sif" reads the text twice, first to count its words: give files, not standard '
            "input or a pipe."
        )
    return word_probabilities(splitter.tokenize(line) for _, line in lines.again())


def _block(rows: list[_Row]) -> Block:
    return Block(
        [index for index, *_ in rows],
        [text for _, text, *_ in rows],
        [words for *_, words, _ in rows],
        [vectors for *_, vectors in rows],
    )


@dataclass
class _Job:
    """One run of `embed_lines`, with checked options."""

    embedder: LineEmbedder
    text: NumberedLines
    lines: LineShare
    path: Path
    store: PartStore
    output_format: OutputFormat
    metadata: dict[str, Any]
    probabilities: dict[str, float]
    """Of the words of the text, for SIF."""
    overwrite: bool
    """Whether --overwrite was given; the command that resumes must leave it out."""
    started: float = field(default_factory=time.monotonic)
    is_text_at_fault: bool = False
    """Whether a line of the text could not be read."""

    def already_done(self) -> EmbedReport:
        """Report on a complete output, after checking that it is from this job and this text."""
        stored = read_metadata(self.path)
        counts = [stored.pop(name, 0) for name in _COUNTS]
        text_hash = stored.pop(_TEXT_HASH, None)
        check_same_job(stored, self.metadata, where=str(self.path))
        for _ in self.lines:
            pass
        if text_hash != self.lines.sha256():
            raise InputError(
                f"Cannot resume: {self.path} is complete, but was made from another text: it has "
                f"{counts[0]:,} lines, and the given text has {self.lines.count:,} lines and "
                "differs. Give the same files in the same order or another output, or start "
                "over with --overwrite."
            )
        self.metadata = self.metadata | {_TEXT_HASH: text_hash}
        self.store.remove()  # if killed just after the rename
        logger.info("%s is already complete", self.path)
        return self._report(counts[0], counts[1], resumed=counts[0], new_words=0)

    def run(self, on_progress: OnProgress) -> EmbedReport:
        """Embed the remaining lines, then merge the parts."""
        resumed = self._skip_finished()
        try:
            new_words = self._embed(resumed, on_progress)
        except BaseException as error:
            self._note_what_is_safe(error)
            raise
        on_progress(self.text.num_bytes, None, f"writing {self.path.name}")
        try:
            sentences, words = self._finish()
        except (OSError, FormatError, KeyboardInterrupt) as error:
            self._note_what_is_safe(error)
            raise
        return self._report(sentences, words, resumed=resumed, new_words=new_words)

    def _skip_finished(self) -> int:
        """Read and compare the finished lines; return their number."""
        count = 0
        for done in self.store.texts():
            line = next(self.lines, None)
            if line != done:
                found = "the text ends before it" if line is None else f"it is now {shown(line[1])}"
                raise InputError(
                    f"Cannot resume: the text has changed. Line {done[0] + 1} was "
                    f"{shown(done[1])} when it was embedded, {found}. Give the same files in the "
                    "same order, or start over with --overwrite."
                )
            count += 1
        return count

    def _embed(self, num_done: int, on_progress: OnProgress) -> int:
        """Embed and store the remaining lines; return their number of words."""
        pending: deque[tuple[int, str]] = deque()

        def lines() -> Iterator[str]:
            try:
                for index, text in self.lines:
                    pending.append((index, text))
                    yield text
            except FormatError:
                self.is_text_at_fault = True
                raise

        stream = self.embedder.stream(lines(), initial_state=self.store.last_state())
        total_bytes = self.text.total_bytes
        rows: list[_Row] = []
        last: tuple[int, BiLMState | None] = (0, None)  # rows so far and the state after them
        first, num_bytes, num_words = num_done, 0, 0
        with closing(stream), self.store.writer(num_done) as writer:
            try:
                for words, vectors, state in stream:
                    stored = self._stored(vectors, words)
                    rows.append((*pending.popleft(), words, stored))
                    last = (len(rows), state)  # at once: Ctrl-C may come between any two lines
                    num_bytes += stored.nbytes
                    num_words += len(words)
                    if num_bytes >= PART_BYTES or len(rows) >= PART_SENTENCES:
                        writer.add(_block(rows), state)
                        rows, last, first, num_bytes = [], (0, None), writer.end, 0
                    speed = num_words / max(time.monotonic() - self.started, 1e-9)
                    status = f"{counted(writer.end + len(rows), 'sentence')}, {speed:,.0f} words/s"
                    on_progress(self.text.num_bytes, total_bytes, status)
            except OSError:
                raise  # the disk may be full
            except BaseException:  # a bad line or Ctrl-C: keep what was computed before
                if writer.end == first:  # else these rows were just written
                    writer.add(_block(rows[: last[0]]), last[1])
                raise
            writer.add(_block(rows), last[1])
        return num_words

    def _stored(self, vectors: np.ndarray, words: list[str]) -> np.ndarray:
        if self.metadata.get("pool") != SIF:
            return vectors
        pooled = weighted_mean(vectors, words, self.probabilities)
        return pooled.astype(self.metadata["dtype"], copy=False)

    def _blocks(self) -> Iterator[Block]:
        """Yield what is written: the parts with their keys, and as the pooling wants them."""
        keys = self.text.keys
        for block in self._pooled_blocks():
            names = None if keys is None else [keys[index] for index in block.indices]
            yield replace(block, keys=names)

    def _pooled_blocks(self) -> Iterator[Block]:
        """Yield the parts, with SIF without the direction that all share."""
        if self.metadata.get("pool") != SIF or not self.store.parts:
            yield from self.store.blocks()
            return
        direction = common_direction(np.stack(block.vectors) for block in self.store.blocks())
        for block in self.store.blocks():
            vectors = [without_common(one, direction).astype(one.dtype) for one in block.vectors]
            yield replace(block, vectors=vectors)

    def _finish(self) -> tuple[int, int]:
        """Merge the parts into the output; return its number of sentences and of words."""
        if not self.lines.count and not self.text.num_bytes:
            self.store.remove()
            names = ", ".join(str(path) for path in self.text.files)
            raise FormatError(f"{names}: no line to embed. Give files with one sentence per line.")
        counts = (self.store.num_sentences, self.store.num_words())  # reads every part
        assert counts[0] == self.lines.count, "a sentence was embedded but not stored"
        self.metadata = self.metadata | {_TEXT_HASH: self.lines.sha256()}
        metadata = self.metadata | dict(zip(_COUNTS, counts, strict=True))
        with atomic_file(self.path) as temp_path:
            write_embeddings(
                temp_path,
                self._blocks(),
                output_format=self.output_format,
                metadata=metadata,
                num_bytes=sum(part.path.stat().st_size for part in self.store.parts),
            )
        self.store.remove()
        return counts

    def _note_what_is_safe(self, error: BaseException) -> None:
        """Add to the error what is on disk; remove the directory of parts if it is empty."""
        if num_safe := self.store.num_safe:
            repair = ""
            if self.is_text_at_fault:
                repair = (
                    "repair the file first (or leave it out, if its first line is already bad); "
                    "then "
                )
            instead = " instead of --overwrite" if self.overwrite else ""
            error.add_note(
                f"{counted(num_safe, 'sentence')} safe in {self.store.directory}; {repair}the same "
                f"command with --resume{instead} continues there."
            )
        else:
            with suppress(InputError, FormatError):  # files of others; the first error is reported
                self.store.remove()

    def _report(self, sentences: int, words: int, *, resumed: int, new_words: int) -> EmbedReport:
        seconds = time.monotonic() - self.started
        return EmbedReport(
            output=self.path,
            sentences=sentences,
            words=words,
            resumed_sentences=resumed,
            seconds=seconds,
            words_per_second=new_words / max(seconds, 1e-9),
            metadata=self.metadata,
        )
