"""Text files to one embedding file: streamed, resumable, split over machines if need be."""

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.bilm.bilm import BiLMState
from elmokit.corpus.read_ahead import read_ahead
from elmokit.embed.embedder import DEFAULT_BATCH_TOKENS, Embedder, StatePolicy
from elmokit.embed.lines import LineShare, NumberedLines
from elmokit.embed.options import check_options
from elmokit.embed.parts import PartStore, check_same_job
from elmokit.embed.writers import (
    Block,
    Container,
    FileDtype,
    FileFormat,
    read_facts,
    write_embeddings,
)
from elmokit.errors import FormatError, InputError
from elmokit.files.atomic import atomic_file, check_target, reserve
from elmokit.files.sources import Paths
from elmokit.inference.batching import NUM_BOUNDARIES
from elmokit.inference.results import Layers
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer

logger = logging.getLogger(__name__)

PART_BYTES = 2**25
"""Vectors that are held before they are put on disk: 32 MB."""
_COUNTS = ("num_sentences", "num_words")
_TEXT_HASH = "text_sha256"

OnProgress = Callable[[int, int | None, str], object]
"""Called with the bytes of text done, the total (if known) and a short status."""


@dataclass(frozen=True, kw_only=True)
class EmbedReport:
    """What an embedding job did."""

    output: Path
    """The embedding file."""
    sentences: int
    """Sentences in the file."""
    words: int
    """Words in the file."""
    resumed_sentences: int
    """Those of the sentences that an earlier run had done."""
    seconds: float
    """Duration of this run, reading and writing included, loading the model not."""
    words_per_second: float
    """Words of this run by its duration."""
    facts: dict[str, Any]
    """What made the vectors, as in the file."""


def embed_files(
    embedder: Embedder,
    texts: Paths,
    output: str | os.PathLike[str],
    *,
    layers: Layers | str = "all",
    state: StatePolicy | str = "reset",
    dtype: FileDtype | str = "float32",
    file_format: FileFormat | str = "elmokit",
    tokenizer: TokenizerConfig | str | None = None,
    shard: tuple[int, int] = (0, 1),
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    resume: bool = False,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> EmbedReport:
    """Embed text files, one sentence a line, into one file.

    Finished sentences go to ``OUTPUT.parts`` a block at a time and are put together at the end, so
    the disk needs room for the vectors twice. A job that was killed at any moment goes on with
    ``resume``. Memory does not depend on the number of lines.

    Args:
        embedder: The model.
        texts: Files; line *i* of all of them together, from 0, has key *i*. A blank line is an
            empty sentence.
        output: The file to write; .h5, .hdf5, .parquet or .npz. With shards each needs its own.
        layers: As in `Embedder.embed`.
        state: As in `Embedder.embed`.
        dtype: How numbers are stored.
        file_format: Form of an HDF5 file.
        tokenizer: Makes words of a line instead of the model's own tokenizer; warns if it differs.
        shard: ``(i, n)`` embeds every n-th line from line i (0 ≤ i < n); keys stay line numbers.
        batch_tokens: As in `Embedder.embed`.
        resume: Go on where a job with the same settings and text stopped; if there is none, begin.
        overwrite: Replace the output and what is left of an earlier job; never one of the texts.
        on_progress: Called now and then.

    Returns:
        What was done.

    Raises:
        FileExistsError: if the output or parts of it exist and neither ``resume`` nor ``overwrite``
            is set.
        ValueError: for an option with none of its allowed values, if the output is one of the
            texts, and if ``resume`` finds the work of another job or of another text.
        FormatError: for a line that cannot be read, and if there is no line at all.
    """
    path = Path(output)
    container = check_options(
        path,
        layers,
        state,
        dtype,
        file_format,
        shard,
        resume,
        overwrite,
        num_layers=embedder.num_layers,
    )
    splitter = embedder.tokenizer
    if tokenizer is not None:
        splitter = NormalizingTokenizer(build_tokenizer(tokenizer), embedder.normalization)
    if splitter.name != embedder.tokenizer_config.name:
        logger.warning(
            "the model was trained on words made by the tokenizer %r, and reads words made by %r "
            "now: expect worse vectors",
            embedder.tokenizer_config.name,
            splitter.name,
        )
    facts = embedder.metadata(layers=layers, state=state) | {
        "tokenizer": {"name": splitter.name, "version": splitter.version},
        "dtype": dtype,
        "format": file_format,
        "shard": f"{shard[0]}/{shard[1]}",
    }
    lines = NumberedLines(texts)
    job = _Job(embedder, lines, lines.share(*shard), path, container, facts)
    store = job.store
    check_target(path, inputs=lines.files, overwrite=resume or overwrite)
    if store.exists and not (resume or overwrite):
        raise FileExistsError(
            f"{store.directory} holds sentences of an unfinished job. Go on with --resume, or "
            "begin anew with --overwrite."
        )
    if resume:
        if store.is_finished(path):
            return job.already_done()
        store.resume(facts, output=path)
    else:
        store.start(facts, output=path)
    return job.run(splitter.tokenize, batch_tokens, on_progress)


class _Job:
    """One run of `embed_files`, after its options were checked."""

    def __init__(
        self,
        embedder: Embedder,
        text: NumberedLines,
        lines: LineShare,
        path: Path,
        container: Container,
        facts: dict[str, Any],
    ) -> None:
        self.embedder = embedder
        self.text = text
        self.lines = lines
        self.path = path
        self.container: Container = container
        self.facts = facts
        self.store = PartStore(path.with_name(path.name + ".parts"))
        self.started = time.monotonic()

    def already_done(self) -> EmbedReport:
        """Report on an output that is complete, after checking that it is this job's and text's."""
        stored = read_facts(self.path)
        counts = [stored.pop(name, 0) for name in _COUNTS]
        text_hash = stored.pop(_TEXT_HASH, None)
        check_same_job(stored, self.facts, where=str(self.path))
        for _ in self.lines:
            pass
        if text_hash != self.lines.sha256():
            raise InputError(
                f"Cannot resume: {self.path} is complete, but holds another text: it was made of "
                f"{counts[0]:,} lines, and the text given has {self.lines.count:,}, not all of "
                "them the same. Give the same files in the same order, another output, or begin "
                "anew with --overwrite."
            )
        self.facts = self.facts | {_TEXT_HASH: text_hash}
        self.store.remove()  # killed between the rename and this
        logger.info("%s is complete already", self.path)
        return self._report(counts[0], counts[1], resumed=counts[0], new_words=0)

    def run(
        self,
        make_words: Callable[[str], list[str]],
        batch_tokens: int,
        on_progress: OnProgress | None,
    ) -> EmbedReport:
        """Do what is still to be done, then put the parts together."""
        resumed = self._skip_finished()
        state = self.store.last_state()
        try:
            new_words = self._embed(resumed, make_words, state, batch_tokens, on_progress)
        except BaseException as error:
            self._say_what_is_safe(error)
            raise
        if on_progress is not None:
            on_progress(self.text.num_bytes, None, f"writing {self.path.name}")
        try:
            sentences, words = self._finish()
        except (OSError, KeyboardInterrupt) as error:
            self._say_what_is_safe(error)
            raise
        return self._report(sentences, words, resumed=resumed, new_words=new_words)

    def _skip_finished(self) -> int:
        """Read past the lines that are done, comparing them; return how many."""
        count = 0
        for done in self.store.texts():
            line = next(self.lines, None)
            if line != done:
                found = "the text ends before it" if line is None else f"it is now {line[1]!r:.60}"
                raise InputError(
                    f"Cannot resume: the text has changed. Line {done[0] + 1} was {done[1]!r:.60} "
                    f"when it was embedded, {found}. Give the same files in the same order, or "
                    "begin anew with --overwrite."
                )
            count += 1
        return count

    def _embed(
        self,
        num_done: int,
        make_words: Callable[[str], list[str]],
        state: BiLMState | None,
        batch_tokens: int,
        on_progress: OnProgress | None,
    ) -> int:
        """Embed the remaining lines and store them; return the number of their words."""
        pending: deque[tuple[int, str, list[str]]] = deque()

        def sentences() -> Iterator[list[str]]:
            for index, text in self.lines:
                words = make_words(text)
                pending.append((index, text, words))
                yield words

        ahead = read_ahead(
            sentences(), limit=2 * batch_tokens, weigh=lambda words: len(words) + NUM_BOUNDARIES
        )
        stream = self.embedder.stream_with_states(
            ahead,
            layers=self.facts["layers"],
            state=self.facts["state"],
            batch_tokens=batch_tokens,
            initial_state=state,
        )
        dtype = np.dtype(self.facts["dtype"])
        block, last_state, num_bytes, num_words = Block([], [], [], []), None, 0, 0
        with closing(ahead), self.store.writer(num_done) as writer:
            try:
                for vectors, last_state in stream:
                    index, text, words = pending.popleft()
                    block.indices.append(index)
                    block.texts.append(text)
                    block.tokens.append(words)
                    block.vectors.append(vectors.astype(dtype, copy=False))
                    num_bytes += block.vectors[-1].nbytes
                    num_words += len(words)
                    if num_bytes >= PART_BYTES:
                        writer.add(block, last_state)
                        block, num_bytes = Block([], [], [], []), 0
                    if on_progress is not None:
                        speed = num_words / max(time.monotonic() - self.started, 1e-9)
                        done = writer.end + len(block.indices)
                        status = f"{done:,} sentences, {speed:,.0f} words/s"
                        on_progress(self.text.num_bytes, self.text.total_bytes, status)
            except OSError:
                raise  # the disk may be full
            except BaseException:
                # what was computed before a bad line or Ctrl-C is kept
                writer.add(block, last_state)
                raise
            writer.add(block, last_state)
        return num_words

    def _finish(self) -> tuple[int, int]:
        """Put the parts together and give the file its name; return the numbers in it."""
        parts = self.store.parts()
        if not parts and not self.text.num_bytes:
            self.store.remove()
            names = ", ".join(str(path) for path in self.text.files)
            raise FormatError(f"{names}: no line to embed. Give files with a sentence a line.")
        counts = (parts[-1].end if parts else 0, self.store.num_words())
        self.facts = self.facts | {_TEXT_HASH: self.lines.sha256()}
        facts = self.facts | dict(zip(_COUNTS, counts, strict=True))
        with atomic_file(self.path) as temp_path:
            if self.container == "hdf5":
                reserve(temp_path, sum(part.path.stat().st_size for part in parts))
            write_embeddings(temp_path, self.store.blocks(), container=self.container, facts=facts)
        self.store.remove()
        return counts

    def _say_what_is_safe(self, error: BaseException) -> None:
        """Tell in the error what is on disk; remove the parts' directory if that is nothing."""
        parts = self.store.parts()
        if parts:
            error.add_note(
                f"{parts[-1].end:,} sentences are safe in {self.store.directory}; the same command "
                "with --resume goes on after them."
            )
        else:
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
            facts=self.facts,
        )
