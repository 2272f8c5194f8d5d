"""The records of text files as numbered sentences, and the vectors of each of them.

`elmokit.corpus.readers` skips and counts bad records. Here the number of a record is the key of its
vectors, so one that cannot be read stops the job.
"""

import hashlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.corpus.read_ahead import read_ahead
from elmokit.embed.embedder import Embedder
from elmokit.embed.options import EmbedOptions
from elmokit.embed.sentences_and_spans import Pooling
from elmokit.embed.streaming import EmbeddedSentence
from elmokit.errors import Location
from elmokit.files.lines import BadLine, text_of_line
from elmokit.files.sources import (
    COMPRESSIONS,
    Paths,
    file_kind,
    file_size,
    find_files,
    is_read_once,
)
from elmokit.files.text_records import TextRecords
from elmokit.inference.contexts import NUM_BOUNDARIES
from elmokit.inference.layers_and_states import LSTMState
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import (
    build_tokenizer,
    tokenizer_for_model,
    tokenizer_metadata,
)

WHY_NOT_SKIPPED = "The line cannot be skipped, because its number identifies its result."


class NumberedLines:
    """The records of some text files, numbered consecutively from 0. Iterate once.

    Iteration yields number and text of every N-th record, from record i on, where ``shard`` is
    (i, N). Blank lines of plain text count; only the line end (LF or CRLF) is removed. Files and
    ``text_field`` are as for `find_files` and `TextRecords`.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        exclude: Sequence[Path] = (),
        shard: tuple[int, int] = (0, 1),
        text_field: str | None = None,
    ) -> None:
        self.files = find_files(paths, exclude=exclude)
        self._shard, self._text_field = shard, text_field
        self._bytes_before = 0
        self._records: TextRecords | None = None
        self._digest = hashlib.sha256()
        self.count = 0
        """Records of the shard that were read so far."""

    @property
    def num_bytes(self) -> int:
        return self._bytes_before + (self._records.num_bytes if self._records else 0)

    @property
    def total_bytes(self) -> int | None:
        """Final value of ``num_bytes``; None if unknown (compressed files, pipes, some servers)."""
        total = 0
        for path in self.files:
            is_packed = file_kind(path) == "parquet" or path.suffix.lower() in COMPRESSIONS
            if is_packed or is_read_once(path) or (size := file_size(path)) is None:
                return None
            total += size
        return total

    def __iter__(self) -> Iterator[tuple[int, str]]:
        shard, num_shards = self._shard
        for index, (_, text) in enumerate(self.located()):
            if index % num_shards == shard:
                self.count += 1
                self._digest.update(f"{index} {text}\n".encode())
                yield index, text

    def sha256(self) -> str:
        """Return the hex hash of the records read so far and their numbers."""
        return self._digest.hexdigest()

    def located(self) -> Iterator[tuple[Location, str]]:
        """Yield every text with its file and its number there; use this or iterate, not both."""
        for path in self.files:
            records = TextRecords(path, text_field=self._text_field)
            self._bytes_before, self._records = self.num_bytes, records
            for record in records:
                location, raw = Location(path=path, line=record.number), record.text
                if isinstance(raw, BadLine):
                    if raw.fault == "blank":  # between records
                        continue
                    raise location.error(f"{raw} {WHY_NOT_SKIPPED}")
                yield location, text_of_line(raw, path, record.number, reason=WHY_NOT_SKIPPED)


@dataclass(frozen=True)
class LocalLineEmbedder:
    """Embeds lines in this process; `elmokit.integrations.ray_data` has one for a cluster."""

    embedder: Embedder
    options: EmbedOptions

    @property
    def num_layers(self) -> int:
        return self.embedder.num_layers

    @cached_property
    def splitter(self) -> NormalizingTokenizer:
        embedder = self.embedder
        tokenizer = tokenizer_for_model(embedder.tokenizer_config, self.options.tokenizer)
        return NormalizingTokenizer(build_tokenizer(tokenizer), embedder.normalization)

    @cached_property
    def _pooling(self) -> Pooling | None:
        if self.options.pooling is None:
            return None
        return Pooling(self.embedder, self.options.pooling, layers=self.options.chosen_layers)

    def metadata(self) -> dict[str, Any]:
        """Return how the vectors are made, as in the file."""
        options = self.options
        return self.embedder.metadata(layers=options.chosen_layers, state=options.state) | {
            "tokenizer": tokenizer_metadata(self.splitter),
            "dtype": options.dtype,
            "format": options.file_format,
            "shard": f"{options.shard[0]}/{options.shard[1]}",
            **({} if options.pooling is None else {"pool": options.pooling}),
        }

    def stream(
        self, lines: Iterable[str], *, initial_state: LSTMState | None = None
    ) -> Generator[EmbeddedSentence, None, None]:
        """Yield words and vectors of the lines, in order; a thread reads and splits them ahead."""
        options, pooling, dtype = self.options, self._pooling, np.dtype(self.options.dtype)
        ahead = read_ahead(
            map(self.splitter.tokenize, lines), limit=2 * options.batch_tokens,
            weigh=lambda words: len(words) + NUM_BOUNDARIES,
        )  # fmt: skip
        sentences = self.embedder.stream(
            ahead,
            layers=options.chosen_layers,
            state=options.state,
            batch_tokens=options.batch_tokens,
            initial_state=initial_state,
        )
        with closing(ahead):
            for sentence in sentences:
                vectors = sentence.vectors
                if pooling is not None:
                    vectors = pooling(vectors, sentence.words)
                yield sentence._replace(vectors=vectors.astype(dtype, copy=False))
