"""A corpus as one file of tokenized sentences, to be read several times."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from elmokit.corpus.readers import ReadReport, read_sentences
from elmokit.corpus.shards import MANIFEST_NAME, ShardSet
from elmokit.errors import ConfigError, FormatError
from elmokit.files.atomic import named
from elmokit.files.remote import AnyFile
from elmokit.files.sources import describe_files, find_files
from elmokit.text.normalization import DEFAULT_NORMALIZATION, Normalization
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_counter import WordCounter
from elmokit.wording import counted

_SENTENCES_AN_EVENT = 1000


@dataclass(frozen=True, kw_only=True)
class TokenizedCorpus:
    """A corpus as sentences, made by `open_corpus`."""

    sentences: Iterator[list[str]]
    num_words: int | None
    """Of all sentences, if known in advance."""
    tokenizer: TokenizerConfig
    normalization: Normalization
    inputs: list[AnyFile]
    """Files that are read."""
    sources: list[dict[str, Any]] | None = None
    """Original text files, if not ``inputs``."""
    report: ReadReport = field(default_factory=ReadReport)
    """Filled while reading."""

    def describe(self) -> list[dict[str, Any]]:
        """Return path, size and SHA-256 of the text files."""
        return describe_files(self.inputs) if self.sources is None else self.sources


@dataclass(frozen=True)
class SentenceFile:
    """Tokenized text: one sentence per line, words separated by spaces."""

    path: Path
    num_sentences: int
    """Of the corpus; long ones take several lines."""
    num_words: int
    counts: dict[str, int]
    """Words that are frequent enough, by descending count, ties in code point order."""

    @property
    def coverage(self) -> float:
        """Share of the words that are frequent enough."""
        return sum(self.counts.values()) / self.num_words

    def lines(self) -> Iterator[list[str]]:
        """Yield the words of each line."""
        with self.path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line[:-1].split(" ")


def open_corpus(
    corpus: Sequence[Path],
    *,
    tokenizer: TokenizerConfig | str | None = None,
    normalization: Normalization = DEFAULT_NORMALIZATION,
) -> TokenizedCorpus:
    """Stream the sentences of files, directories or patterns, or of directories of finished shards.

    Without ``tokenizer``, text is split by ``simple``; normalization is for text only.
    """
    is_finished = [(path / MANIFEST_NAME).exists() for path in corpus]
    if corpus and all(is_finished):
        return _open_shards(corpus, tokenizer)
    if any(is_finished):
        raise ConfigError(
            f"{corpus[is_finished.index(True)]} holds finished shards, and "
            f"{corpus[is_finished.index(False)]} does not. Give directories of finished shards "
            "only, or raw text only."
        )
    files = find_files(corpus)
    splitter = build_tokenizer(tokenizer or "simple")
    report = ReadReport()
    return TokenizedCorpus(
        sentences=read_sentences(files, splitter, normalization=normalization, report=report),
        num_words=None,
        tokenizer=TokenizerConfig(name=splitter.name, version=splitter.version),
        normalization=normalization,
        inputs=files,
        report=report,
    )


def write_sentence_file(
    corpus: TokenizedCorpus,
    path: Path,
    *,
    max_words: int,
    min_count: int = 1,
    on_words: Callable[[int], object] | None = None,
) -> SentenceFile:
    """Write the sentences of a corpus, consuming them, and count its words.

    Args:
        corpus: From `open_corpus`.
        path: The file.
        max_words: Longer sentences continue on the next line.
        min_count: Rarer words are left out of ``counts``.
        on_words: Called now and then with the number of words.
    """
    num_sentences = 0
    with (
        WordCounter() as counter,
        named(path),
        path.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for sentence in map(_without_blanks, corpus.sentences):
            for begin in range(0, len(sentence), max_words):
                file.write(" ".join(sentence[begin : begin + max_words]) + "\n")
            counter.add(sentence)
            num_sentences += 1
            if on_words is not None and num_sentences % _SENTENCES_AN_EVENT == 0:
                on_words(counter.num_words)
        counts = dict(counter.most_common(min_count=min_count))
        num_words = counter.num_words
    if not counts:
        raise FormatError(
            f"No word occurs {min_count} times among the {counted(num_words, 'word')} of this "
            "corpus, so nothing is left. Give more text or a smaller min_count."
        )
    return SentenceFile(path, num_sentences, num_words, counts)


def _without_blanks(sentence: list[str]) -> list[str]:
    """Divide words with blanks inside (``1 000`` in treebanks), as the file is read again."""
    if not any(" " in word for word in sentence):
        return sentence
    return [part for word in sentence for part in word.split(" ") if part]


def _open_shards(
    shard_dirs: Sequence[Path], wanted: TokenizerConfig | str | None
) -> TokenizedCorpus:
    opened = [ShardSet.open(shard_dir) for shard_dir in shard_dirs]
    used, normalization = _tokenization(opened[0])
    if isinstance(wanted, str):
        wanted = TokenizerConfig(name=wanted)
    for shard_dir, (tokenizer, form) in zip(shard_dirs, map(_tokenization, opened), strict=True):
        is_wanted = wanted is None or wanted.matches(tokenizer)
        if not is_wanted or not tokenizer.matches(used) or form != normalization:
            expected = f"{used} and {normalization}" if is_wanted else wanted
            raise ConfigError(
                f"The shards in {shard_dir} were made with the tokenizer {tokenizer} and {form}, "
                f"not with {expected}. Give shards of one tokenizer and normalization, or the raw "
                "text."
            )
    return TokenizedCorpus(
        sentences=chain.from_iterable(shards.sentences() for shards in opened),
        num_words=sum(shards.num_words for shards in opened),
        tokenizer=used,
        normalization=normalization,
        inputs=find_files(shard_dirs),
        sources=[source for shards in opened for source in shards.metadata.get("sources", [])],
    )


def _tokenization(shards: ShardSet) -> tuple[TokenizerConfig, Normalization]:
    return shards.tokenizer or TokenizerConfig(), shards.metadata.get("normalization") or "NFC"
