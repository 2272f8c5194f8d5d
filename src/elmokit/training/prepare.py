"""From raw text to what training reads: tokenized shards, a vocabulary, held-out sentences.

All of it stands in the run directory and is made in one streaming pass; a resumed run finds it
there.
"""

import dataclasses
import logging
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmokit.corpus.files import describe_files
from elmokit.corpus.hold_out import HoldOut
from elmokit.corpus.readers import ReadReport, read_sentences
from elmokit.corpus.shards import MANIFEST_NAME, ShardSet, write_shards
from elmokit.errors import FormatError
from elmokit.text.char_vocab import Normalization
from elmokit.text.tokenizers import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import WordCounter, WordVocab

log = logging.getLogger(__name__)

SHARDS, VALID, VOCAB = "shards", "valid", "vocab.txt"
WARM_SENTENCES = 100


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """How raw text becomes sentences."""

    tokenizer: TokenizerConfig = field(default_factory=lambda: TokenizerConfig(name="simple"))
    """Splits text into sentences and words; stored in the model."""
    tokens_per_shard: int = 1_000_000
    """Words in one shard file; a shard is what is in memory at a time."""
    valid_sentences: int = 2000
    """Sentences held out where no validation text is given; never more than a fiftieth."""


@dataclass(frozen=True, kw_only=True)
class VocabConfig:
    """The words that are predicted."""

    max_size: int | None = 30_000
    """V without the three specials; the most frequent words are kept. None: no limit."""
    min_count: int = 2
    """Words seen more rarely are left out."""


@dataclass(frozen=True)
class PreparedText:
    """What `prepare_text` made or found."""

    shards: ShardSet
    vocab: WordVocab
    valid: ShardSet | None
    """Held-out sentences; none for a corpus of finished shards without validation text."""

    def warm_text(self) -> tuple[str, ...]:
        """Return ordinary held-out sentences, from which the warm start state is made."""
        source = self.valid or self.shards
        chosen: list[str] = []
        for sentence in source.sentences():
            if 5 <= len(sentence) <= 40:
                chosen.append(" ".join(sentence))
            if len(chosen) == WARM_SENTENCES:
                break
        return tuple(chosen)


def prepare_text(
    corpus: Sequence[Path],
    run_dir: Path,
    *,
    text: TextConfig,
    vocab: VocabConfig,
    normalization: Normalization,
    valid: Sequence[Path] = (),
    fixed_vocab: WordVocab | None = None,
) -> PreparedText:
    """Make shards, vocabulary and validation sentences in ``run_dir``; what is there is opened.

    Args:
        corpus: Text files, or one directory of finished shards, which is used as it is.
        run_dir: Where to write.
        text: Tokenizer and shard size.
        vocab: Size of the vocabulary that is counted.
        normalization: Of the text.
        valid: Validation text; none: a few sentences of the corpus are held out.
        fixed_vocab: Use this vocabulary instead of counting one.

    Raises:
        FormatError: if the text cannot be read or gives an empty vocabulary.
    """
    maker = _Maker(text, normalization)
    run_dir.mkdir(parents=True, exist_ok=True)
    if len(corpus) == 1 and (corpus[0] / MANIFEST_NAME).exists():
        shards = ShardSet.open(corpus[0])
        held_out = None
    else:
        shards = maker.find(run_dir / SHARDS, corpus)
        held_out = None if valid else maker.find(run_dir / VALID, corpus)
        if shards is None or (held_out is None and not valid):
            shards, held_out = maker.write(run_dir, corpus, hold_out=not valid)
    if valid:
        held_out = maker.find(run_dir / VALID, valid) or maker.write_one(run_dir / VALID, valid)
    if fixed_vocab is not None:
        fixed_vocab.write(run_dir / VOCAB)
    elif not (run_dir / VOCAB).exists():
        _count_words(shards.sentences(), vocab).write(run_dir / VOCAB)
    return PreparedText(shards, WordVocab.read(run_dir / VOCAB), held_out)


class _Maker:
    """Makes shards of text files, and finds those that are of the same files and settings."""

    def __init__(self, text: TextConfig, normalization: Normalization) -> None:
        self.text = text
        self.normalization: Normalization = normalization

    def find(self, target: Path, paths: Sequence[Path]) -> ShardSet | None:
        """Open finished shards in ``target`` if they are what `write` would make again."""
        if not (target / MANIFEST_NAME).exists():
            return None
        shards = ShardSet.open(target)
        wanted = self._facts(paths, version="")
        found = {
            **shards.metadata,
            "tokenizer": {**shards.metadata.get("tokenizer", {}), "version": ""},
        }
        return shards if all(found.get(key) == value for key, value in wanted.items()) else None

    def write(
        self, run_dir: Path, paths: Sequence[Path], *, hold_out: bool
    ) -> tuple[ShardSet, ShardSet | None]:
        """Write the training shards and, from the same pass, the held-out sentences."""
        report = ReadReport()
        holder = HoldOut(share=0.02, max_sentences=self.text.valid_sentences)
        sentences, metadata = self._read(paths, report)
        for name in (SHARDS, VALID) if hold_out else (SHARDS,):
            shutil.rmtree(run_dir / name, ignore_errors=True)
        shards = write_shards(
            holder.split(sentences) if hold_out else sentences,
            run_dir / SHARDS,
            tokens_per_shard=self.text.tokens_per_shard,
            metadata=metadata,
        )
        log.info(
            "%d lines read, %d sentences, %d words in %d shards",
            report.lines, report.sentences, report.words, len(shards),
        )  # fmt: skip
        (run_dir / VOCAB).unlink(missing_ok=True)
        if not hold_out:
            return shards, None
        held_out = holder.sentences
        if not held_out:
            log.warning("the corpus is too small to hold anything out: there will be no validation")
            return shards, None
        return shards, write_shards(held_out, run_dir / VALID, metadata=metadata)

    def write_one(self, target: Path, paths: Sequence[Path]) -> ShardSet:
        """Write shards of validation files."""
        shutil.rmtree(target, ignore_errors=True)
        sentences, metadata = self._read(paths, ReadReport())
        return write_shards(sentences, target, metadata=metadata)

    def _read(
        self, paths: Sequence[Path], report: ReadReport
    ) -> tuple[Iterable[list[str]], dict[str, Any]]:
        tokenizer = build_tokenizer(self.text.tokenizer)
        sentences = read_sentences(
            list(paths), tokenizer, normalization=self.normalization, report=report
        )
        return sentences, self._facts(paths, version=tokenizer.version)

    def _facts(self, paths: Sequence[Path], *, version: str) -> dict[str, Any]:
        return {
            "tokenizer": {"name": self.text.tokenizer.name, "version": version},
            "normalization": self.normalization,
            "settings": {
                key: value
                for key, value in dataclasses.asdict(self.text).items()
                if key != "tokenizer"
            },
            "sources": describe_files(list(paths)),
        }


def _count_words(sentences: Iterable[Sequence[str]], config: VocabConfig) -> WordVocab:
    with WordCounter() as counter:
        for sentence in sentences:
            counter.add(sentence)
        counts = counter.most_common(max_size=config.max_size, min_count=config.min_count)
    if not counts:
        raise FormatError(
            f"No word occurs {config.min_count} times in this corpus, so the vocabulary would be "
            "empty. Give more text or set vocab.min_count=1."
        )
    return WordVocab.build(counts)
