"""Shards of text files, written in one streamed pass that holds some sentences out."""

import dataclasses
import heapq
import logging
import random
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

from elmokit.corpus.readers import ReadReport, read_sentences, read_text_lines
from elmokit.corpus.shards import MANIFEST_NAME, ShardSet, write_shards
from elmokit.errors import Bounds, CheckedFields, ConfigError, Count, InputError, counted
from elmokit.files.remote import as_file
from elmokit.files.sources import describe_files, find_files, is_read_once, text_sha256
from elmokit.text.normalization import Normalization, normalize
from elmokit.text.sentences import ONE_PROCESS, Workers, tokenize_lines
from elmokit.text.tokenizers.registry import (
    AUTO,
    TokenizerConfig,
    build_tokenizer,
    tokenizer_metadata,
)

log = logging.getLogger(__name__)

NUM_HELD_OUT, GENERAL_TEXT = "num_held_out", "general_text"
SENTENCES_AN_EVENT = 500
_BLOCK_SENTENCES = 5


@dataclass(frozen=True, kw_only=True)
class TextConfig(CheckedFields):
    """How raw text becomes sentences."""

    tokenizer: TokenizerConfig = dataclasses.field(
        default_factory=lambda: TokenizerConfig(name=AUTO)
    )
    """Splits text into sentences and words; stored in the model. ``auto``: that of finished shards,
    else `simple`."""
    field: str | None = None
    """Field of JSON lines, or column of Parquet and of tables (name, or number from 1), that holds
    the text; none: ``text``; 0: whole lines."""
    tokens_per_shard: Count = 250_000
    """Words per shard file."""
    valid_sentences: Count = 2000
    """Sentences held out without validation text; about a fiftieth at most, and together 100,000
    words, or 50 a sentence if that is more."""
    replay: str | None = None
    """General text, a file or pattern, that is mixed into the training text; none: none. Its
    beginning is read, or all of it repeatedly, as `replay_share` needs."""
    replay_share: Annotated[float, Bounds(0.001, 0.999)] = 0.2
    """Share of the training words that `replay` has."""


@dataclass(frozen=True)
class Preparation:
    """Progress in splitting a text."""

    sentences: int
    words: int


OnPreparation = Callable[[Preparation], object]


@runtime_checkable
class SentenceReader(Protocol):
    """Reads tokenized sentences of files that are not lines of raw text."""

    @property
    def name(self) -> str: ...

    def read(self, path: Path) -> Iterable[Sequence[str]]:
        """Return the sentences of a file; `FormatError` if it is damaged."""
        ...


@dataclass(frozen=True)
class TextShards:
    """Writes shards of text files."""

    text: TextConfig
    normalization: Normalization
    on_preparation: OnPreparation | None = None
    workers: Workers = ONE_PROCESS
    reader: SentenceReader | None = None
    """Reads the files, of which each distinct sentence is kept once; none: lines of raw text."""

    def like(self, shards: ShardSet, *, normalization_is_fixed: bool = False) -> "TextShards":
        """Copy with tokenizer and normalization of finished shards, as far as these say them."""
        wanted, form = self.text.tokenizer, self.normalization
        tokenizer = shards.tokenizer or wanted
        normalization = shards.metadata.get("normalization", form)
        for was, now, is_refused in (
            (tokenizer, wanted, not wanted.matches(tokenizer) and wanted.name != AUTO),
            (normalization, form, normalization_is_fixed and normalization != form),
        ):
            if is_refused:
                raise ConfigError(
                    f"The shards in {shards.shard_dir} were made with {was}, but {now} is asked "
                    "for, or is that of the model or of other shards. Give the raw text, or leave "
                    "out --tokenizer."
                )
        text = dataclasses.replace(self.text, tokenizer=tokenizer)
        return dataclasses.replace(self, text=text, normalization=normalization)

    def without_replay(self) -> "TextShards":
        return dataclasses.replace(self, text=dataclasses.replace(self.text, replay=None))

    def make(
        self,
        sources: Sequence[Mapping[str, Any]],
        target: Path,
        *,
        held_out_dir: Path | None = None,
        report: ReadReport | None = None,
    ) -> tuple[ShardSet, ShardSet | None]:
        """Write shards of files from `describe_files`, and those of held-out sentences."""
        metadata = self._metadata(sources)
        report = ReadReport() if report is None else report
        sentences = self._reported(self._read(sources, report), report)
        held_out: list[list[str]] = []
        if held_out_dir is not None:
            sentences = self._hold_out(sentences, held_out, metadata)
        if self.text.replay is not None:
            sentences = interleaved(sentences, self._replayed, self.text.replay_share)
        size = self.text.tokens_per_shard
        for directory in filter(None, (target, held_out_dir)):  # of an interrupted preparation
            (directory / MANIFEST_NAME).unlink(missing_ok=True)
        shards = write_shards(sentences, target, tokens_per_shard=size, metadata=metadata)
        lines = f"{counted(report.lines, 'line')} read, " if self.reader is None else ""
        log.info(
            "%s%s, %s in %s", lines, counted(report.sentences, "sentence"),
            counted(report.words, "word"), counted(len(shards), "shard"),
        )  # fmt: skip
        if held_out_dir is None:
            return shards, None
        if not held_out:
            log.warning("the corpus is too small to hold anything out: there will be no validation")
            return shards, None
        return shards, write_shards(
            held_out, held_out_dir, tokens_per_shard=size, metadata=shards.metadata
        )

    def _read(
        self, sources: Sequence[Mapping[str, Any]], report: ReadReport
    ) -> Iterator[list[str]]:
        if self.reader is not None:
            return self._read_with(self.reader, sources, report)
        files = [as_file(source["path"]) for source in sources]
        lines = read_text_lines(files, report, text_field=self.text.field)
        return tokenize_lines(
            (line.text for line in lines), build_tokenizer(self.text.tokenizer),
            self.normalization, report, workers=self.workers,
        )  # fmt: skip

    def _reported(self, sentences: Iterator[list[str]], report: ReadReport) -> Iterator[list[str]]:
        on_preparation, number = self.on_preparation or (lambda _: None), 0
        for number, sentence in enumerate(sentences, start=1):
            if number % SENTENCES_AN_EVENT == 0:
                on_preparation(Preparation(number, report.words))
            yield sentence
        on_preparation(Preparation(number, report.words))

    def _replayed(self) -> Iterator[list[str]]:
        return read_sentences(
            [str(self.text.replay)], build_tokenizer(self.text.tokenizer),
            normalization=self.normalization, text_field=self.text.field, workers=self.workers,
        )  # fmt: skip

    def _read_with(
        self, reader: SentenceReader, sources: Sequence[Mapping[str, Any]], report: ReadReport
    ) -> Iterator[list[str]]:
        """Yield each sentence once: a repeated one could be both trained on and held out."""
        seen: set[bytes] = set()
        for source in sources:
            for sentence in reader.read(Path(source["path"])):
                forms = (normalize(word, self.normalization) for word in sentence)
                words = [form for form in forms if form]
                sha256 = bytes.fromhex(text_sha256("\n".join(words)))
                if sha256 in seen:
                    continue
                seen.add(sha256)
                report.sentences += 1
                report.words += len(words)
                yield words

    def _hold_out(
        self, sentences: Iterator[list[str]], held_out: list[list[str]], metadata: dict[str, Any]
    ) -> Iterator[list[str]]:
        """Yield the training sentences; at the end, collect and count the others."""
        most = self.text.valid_sentences
        held_out += yield from hold_out(
            sentences, max_sentences=most, max_words=max(100_000, 50 * most)
        )
        metadata[NUM_HELD_OUT] = len(held_out)  # the manifest is written after this

    def _metadata(self, sources: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        settings = dataclasses.asdict(self.text)
        del settings["tokenizer"]
        if self.text.replay is None:  # as before there was one
            del settings["replay"], settings["replay_share"]
        tokenizer = build_tokenizer(self.text.tokenizer)
        return {
            **self._general_text(),
            "tokenizer": tokenizer_metadata(tokenizer),
            "normalization": self.normalization,
            "settings": settings,
            "sources": list(sources),
            "reader": None if self.reader is None else self.reader.name,
        }

    def _general_text(self) -> dict[str, Any]:
        """Return what is recorded of `replay`, if there is any."""
        if self.text.replay is None:
            return {}
        files = find_files([Path(self.text.replay)])
        if any(map(is_read_once, files)):
            raise InputError(f"text.replay {files[0]}: this is read repeatedly. Give a file.")
        return {GENERAL_TEXT: {"share": self.text.replay_share, "sources": describe_files(files)}}


def hold_out(
    sentences: Iterable[list[str]],
    *,
    max_sentences: int,
    max_words: int,
    share: float = 0.02,
) -> Generator[list[str], None, list[list[str]]]:
    """Yield the training sentences, and return a small part that is spread evenly over the corpus.

    Each block of neighboring sentences draws a random number; the blocks with the smallest numbers
    are held out, up to the limits: at least one block of two, at most ``max_sentences`` (rounded up
    to a block) and ``max_words``. Blocks that others displace are trained on after all, late and
    out of corpus order. The same corpus gives the same split.
    """
    held: list[tuple[float, int, list[list[str]]]] = []  # heap: largest number first
    num_words, index = 0, -1
    draw, iterator = random.Random(0).random, iter(sentences)
    # The blocks with the smallest random numbers are a uniform sample whatever the length of the
    # corpus, which is not known before its end.
    for index, block in enumerate(iter(lambda: list(islice(iterator, _BLOCK_SENTENCES)), [])):
        number = draw()
        if held and number >= max(share, -held[0][0]):
            yield from block
            continue
        heapq.heappush(held, (-number, index, block))
        num_words += sum(map(len, block))
        while len(held) > 1 and (
            -held[0][0] >= share
            or (len(held) - 1) * _BLOCK_SENTENCES >= max_sentences
            or num_words > max_words
        ):
            _, _, displaced = heapq.heappop(held)
            num_words -= sum(map(len, displaced))
            yield from displaced
    if index == 0:  # nothing would be left to train on
        yield from held.pop()[2]
    return [sentence for _, _, block in sorted(held, key=itemgetter(1)) for sentence in block]


def interleaved(
    sentences: Iterable[list[str]], others: Callable[[], Iterator[list[str]]], share: float
) -> Iterator[list[str]]:
    """Yield sentences, and between them others that make up a share of all words."""
    debt, num_words, num_passes = 0.0, 0, 1
    source = others()
    for sentence in sentences:
        yield sentence
        debt += len(sentence) * share / (1 - share)
        while debt > 0:
            if (other := next(source, None)) is None:
                if not num_words:
                    raise InputError("the general text (text.replay) has no words.")
                source, num_passes = others(), num_passes + 1
                continue
            debt -= len(other)
            num_words += len(other)
            yield other
    log.info(
        "%s of general text mixed in (pass %d over it)", counted(num_words, "word"), num_passes
    )
