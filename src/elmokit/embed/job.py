"""Text files to one embedding file: streamed, resumable, optionally split over machines."""

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.embed.formats.registry import read_metadata
from elmokit.embed.formats.rows import Row
from elmokit.embed.numbered_lines import NumberedLines
from elmokit.embed.options import EmbedOptions
from elmokit.embed.part_store import PartStore
from elmokit.errors import FormatError, InputError, counted, shown
from elmokit.files.atomic import atomic_file, check_target
from elmokit.files.sources import Paths
from elmokit.files.temporary import remove_leftovers
from elmokit.inference.layers_and_states import LSTMState
from elmokit.jobs.identity import Identity
from elmokit.jobs.job import open_job

logger = logging.getLogger(__name__)

PART_BYTES = 2**25
"""Vectors held in memory before they are written: 32 MB."""
PART_SENTENCES = 4096
"""Sentences held in memory before they are written, however short."""

OnProgress = Callable[[int, int | None, str], object]
"""(bytes of text done, total if known, short status)."""


@dataclass(frozen=True, kw_only=True)
class EmbedReport:
    output: Path
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


def output_paths(path: Path) -> list[Path]:
    """Return where a job with this output writes, which is no text: the output and its parts."""
    return [path, path.with_name(path.name + ".parts")]


def embed_lines(
    embedder: Any,
    texts: Paths,
    output: str | os.PathLike[str],
    options: EmbedOptions,
    *,
    on_progress: OnProgress | None = None,
) -> EmbedReport:
    """Embed text files, one sentence per line, into one file.

    Finished sentences go to ``OUTPUT.parts`` block by block and are merged at the end, so the disk
    needs room for the vectors twice. Memory does not depend on the number of lines.

    Line *i* of all ``texts`` together, from 0, has key *i*; a blank line is an empty sentence. The
    suffix of ``output`` sets the format (`elmokit.embed.formats.registry`); each shard needs its
    own output. An existing output or job is refused unless ``resume`` or ``overwrite`` is set, and
    ``resume`` refuses another job or text.

    ``embedder`` is a `LocalLineEmbedder`, or an object with the same methods.
    """
    path, parts_dir = output_paths(Path(output))
    output_format = options.check(path, num_layers=embedder.num_layers)
    metadata = embedder.metadata()
    text = NumberedLines(
        texts, exclude=output_paths(path), shard=options.shard, text_field=options.text_field
    )
    may_replace = options.resume or options.overwrite
    check_target(path, inputs=text.files, overwrite=may_replace)
    parts = PartStore(parts_dir)
    with open_job(
        parts_dir, "embed", Identity(metadata), resume=options.resume,
        overwrite=options.overwrite, pieces=parts,
    ) as job:  # fmt: skip
        check_target(path, inputs=text.files, overwrite=may_replace)  # another may have finished
        for folder in (path.parent, parts_dir):
            remove_leftovers(folder)
        started = time.monotonic()
        is_finished = not job.record or job.record.get("finished")
        if options.resume and path.exists() and is_finished:
            resumed_words, new_words = _check_finished(path, text, metadata), 0
            resumed = text.count
            logger.info("%s is already complete", path)
        else:
            job.begin()
            on_progress = on_progress or (lambda *_: None)
            lines = iter(text)
            resumed, resumed_words = _check_parts(parts, lines)
            new_words = _embed(embedder, text, lines, parts, on_progress)
            on_progress(text.num_bytes, None, f"writing {path.name}")
            made = metadata | {
                "text_sha256": text.sha256(), "num_sentences": text.count,
                "num_words": resumed_words + new_words,
            }  # fmt: skip
            with atomic_file(path) as temp_path:
                output_format.module.write(
                    temp_path, parts.blocks(text.count), made,
                    num_bytes=sum(part.stat().st_size for part in parts.paths()),
                )  # fmt: skip
            # said before the parts go: a kill among them must not look like a job half done
            job.begin(finished=True)
        job.forget()
    seconds = max(time.monotonic() - started, 1e-9)
    return EmbedReport(
        output=path, sentences=text.count, words=resumed_words + new_words,
        resumed_sentences=resumed, seconds=seconds, words_per_second=new_words / seconds,
        metadata=metadata | {"text_sha256": text.sha256()},
    )  # fmt: skip


def _check_finished(path: Path, text: NumberedLines, metadata: dict[str, Any]) -> int:
    """Check that a complete output is of this job and this text; return its number of words."""
    stored = read_metadata(path)
    sentences, num_words = stored.pop("num_sentences", 0), stored.pop("num_words", 0)
    text_hash = stored.pop("text_sha256", None)
    advice = "Repeat the original command, or start over with --overwrite."
    Identity(metadata).refuse_changes({"config": stored}, path, advice)
    for _ in text:  # the hash is that of all lines
        pass
    if text_hash != text.sha256():
        raise InputError(
            f"{path} was made from another text: it has {sentences:,} lines, and this one "
            f"{text.count:,}. {advice}"
        )
    return num_words


def _check_parts(parts: PartStore, lines: Iterator[tuple[int, str]]) -> tuple[int, int]:
    """Compare the text with the parts; return how many sentences and words they hold."""
    parts.drop_after_gap()
    resumed = resumed_words = 0
    for index, stored, num_words in parts.texts():
        line = next(lines, None)
        if line != (index, stored):
            now = "the text ends before it" if line is None else f"it is now {shown(line[1])}"
            raise InputError(
                f"The text has changed. Line {index + 1} was {shown(stored)} when it was "
                f"embedded, {now}. Give the same files in the same order, or --overwrite."
            )
        resumed += 1
        resumed_words += num_words
    return resumed, resumed_words


def _embed(
    embedder: Any,
    text: NumberedLines,
    lines: Iterator[tuple[int, str]],
    parts: PartStore,
    on_progress: OnProgress,
) -> int:
    """Embed and store the remaining lines; return the number of their words."""
    pending: deque[tuple[int, str]] = deque()

    def texts() -> Iterator[str]:
        for line in lines:
            pending.append(line)
            yield line[1]

    # the embedder reads some lines ahead, so they wait here for their vectors
    stream = embedder.stream(texts(), initial_state=parts.last_state())
    started, first, total_bytes = time.monotonic(), parts.num_sentences, text.total_bytes
    rows: list[Row] = []
    last: tuple[int, LSTMState | None] = (0, None)  # rows so far and the state after them
    num_words = num_bytes = 0
    with closing(stream):
        try:
            for words, vectors, state in stream:
                index, line = pending.popleft()
                rows.append(Row(index, line, words, vectors))
                last = (len(rows), state)  # at once: Ctrl-C may come between any two lines
                num_bytes += vectors.nbytes
                num_words += len(words)
                if num_bytes >= PART_BYTES or len(rows) >= PART_SENTENCES:
                    parts.add(first, rows, state)
                    first, rows, last, num_bytes = first + len(rows), [], (0, None), 0
                speed = num_words / max(time.monotonic() - started, 1e-9)
                status = f"{counted(first + len(rows), 'sentence')}, {speed:,.0f} words/s"
                on_progress(text.num_bytes, total_bytes, status)
        except OSError:
            raise  # the disk may be full
        except BaseException:  # a bad line or Ctrl-C: keep what was computed before
            if first == parts.num_sentences:  # else these rows were just written
                parts.add(first, rows[: last[0]], last[1])
            raise
        parts.add(first, rows, last[1])
    if not text.count and not text.num_bytes:
        names = ", ".join(map(str, text.files))
        raise FormatError(f"{names}: no line to embed. Give files with one sentence per line.")
    return num_words
