"""From raw text to what training reads: tokenized shards, a vocabulary, held-out sentences.

All of it stands in the run directory; the text is read once, streamed, and a resumed run finds
the rest there.
"""

import dataclasses
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from elmokit.corpus.files import changed_file, describe_files, find_files
from elmokit.corpus.hold_out import HoldOut
from elmokit.corpus.readers import ReadReport, read_sentences
from elmokit.corpus.shards import MANIFEST_NAME, ShardSet, write_shards
from elmokit.errors import ConfigError, FormatError
from elmokit.text.char_vocab import Normalization
from elmokit.text.tokenizers import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import WordCounter, WordVocab

log = logging.getLogger(__name__)

SHARDS, VALID, VOCAB = "shards", "valid", "vocab.txt"
NUM_HELD_OUT = "num_held_out"
"""In the manifests, where a part of the corpus went to `VALID`: how many sentences."""
WARM_SENTENCES = 100
MAX_COUNTED = 100_000
"""Distinct words counted in memory at once."""
SENTENCES_AN_EVENT = 500
"""How often the preparation says how far it is."""


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """How raw text becomes sentences."""

    tokenizer: TokenizerConfig = field(default_factory=lambda: TokenizerConfig(name="simple"))
    """Splits text into sentences and words; stored in the model."""
    tokens_per_shard: int = 250_000
    """Words in one shard file; a shard is what is in memory at a time."""
    valid_sentences: int = 2000
    """Sentences held out where no validation text is given; about a fiftieth at most."""


@dataclass(frozen=True, kw_only=True)
class VocabConfig:
    """The words that are predicted."""

    max_size: int | None = 30_000
    """V without the three specials; the most frequent words are kept. None: no limit."""
    min_count: int = 2
    """Words seen more rarely are left out."""


@dataclass(frozen=True)
class Preparation:
    """How far the preparation of a text is."""

    stage: Literal["tokenizing", "counting words"]
    sentences: int
    """Done in this stage."""
    words: int
    """Done in this stage."""
    total_words: int | None
    """What ``words`` will be at its end, where that is known."""


OnPreparation = Callable[[Preparation], object]


@dataclass(frozen=True)
class PreparedText:
    """What `prepare_text` made or found."""

    shards: ShardSet
    vocab: WordVocab
    valid: ShardSet | None
    """Held-out sentences; none for a corpus of finished shards without validation text."""

    def warm_text(self) -> tuple[str, ...]:
        """Return ordinary training sentences, from which the warm start state is made."""
        ordinary = (" ".join(words) for words in self.shards.sentences() if 5 <= len(words) <= 40)
        return tuple(islice(ordinary, WARM_SENTENCES))


def prepare_text(
    corpus: Sequence[Path],
    run_dir: Path,
    *,
    text: TextConfig,
    vocab: VocabConfig,
    normalization: Normalization,
    valid: Sequence[Path] = (),
    fixed_vocab: WordVocab | None = None,
    on_preparation: OnPreparation | None = None,
) -> PreparedText:
    """Make shards, vocabulary and validation sentences in ``run_dir``.

    Finished shards that stand there are not made again if they are of the same files and settings.

    Args:
        corpus: Text files, or one directory of finished shards, which is used as it is.
        run_dir: Where to write; shards and vocabulary that stand there may be replaced.
        text: Tokenizer and shard size.
        vocab: Size of the vocabulary that is counted.
        normalization: Of the text.
        valid: Validation text; none: a few sentences of the corpus are held out.
        fixed_vocab: Use this vocabulary instead of counting one.
        on_preparation: Called now and then.

    Raises:
        FormatError: if the text cannot be read or gives an empty vocabulary.
        ConfigError: if finished shards were made by another tokenizer than ``text`` asks for.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    held_out = None
    if is_finished(corpus):
        shards = ShardSet.open(corpus[0])
        maker = _Maker.like(shards, text, normalization, on_preparation)
        if not valid:
            log.warning("%s is used as it is: nothing is held out, no validation", corpus[0])
    else:
        maker = _Maker(text, normalization, on_preparation)
        shards, held_out = maker.split(run_dir, corpus, hold_out=not valid)
    if valid:
        held_out = maker.find(run_dir / VALID, valid) or maker.write(run_dir / VALID, valid)
    if fixed_vocab is None:
        sentences = _watched(
            shards.sentences(), "counting words", on_preparation, total_words=shards.num_words
        )
        fixed_vocab = _count_words(sentences, vocab)
    fixed_vocab.write(run_dir / VOCAB)
    return PreparedText(shards, WordVocab.read(run_dir / VOCAB), held_out)


def open_text(corpus: Sequence[Path], run_dir: Path) -> PreparedText:
    """Open what `prepare_text` made; nothing is written, and text files are not looked at.

    Raises:
        FileNotFoundError: if something of it is missing.
    """
    if is_finished(corpus):
        shards = ShardSet.open(corpus[0])
        has_valid = (run_dir / VALID / MANIFEST_NAME).exists()
    else:
        shards = ShardSet.open(run_dir / SHARDS)
        has_valid = shards.metadata.get(NUM_HELD_OUT) != 0
    valid = ShardSet.open(run_dir / VALID) if has_valid else None
    return PreparedText(shards, WordVocab.read(run_dir / VOCAB), valid)


def check_same_text(
    text: PreparedText, corpus: Sequence[Path], valid: Sequence[Path], run_dir: Path
) -> None:
    """Refuse to go on with a run whose text files have changed since they were read.

    Files that are gone are no obstacle: the run has what it needs of them. Finished shards are
    compared by the stream of windows.

    Args:
        text: What the run trains on.
        corpus: As it was given to `prepare_text`.
        valid: As it was given to `prepare_text`.
        run_dir: Of the run.

    Raises:
        ConfigError: naming the first file that has changed.
    """
    pairs = [] if is_finished(corpus) else [(text.shards, corpus)]
    if valid and text.valid is not None:
        pairs.append((text.valid, valid))
    for shards, paths in pairs:
        changed = changed_file(shards.metadata.get("sources", []), list(paths))
        if changed is not None:
            raise ConfigError(
                f"{changed} has changed since the run in {run_dir} read it. That run goes on with "
                f"the text as it was, which stands in {shards.shard_dir}: put the old file back, "
                "or move the new one away. To train on the new text, give another directory."
            )


def is_finished(corpus: Sequence[Path]) -> bool:
    """Whether the corpus is a directory of finished shards."""
    return len(corpus) == 1 and (corpus[0] / MANIFEST_NAME).exists()


def check_files(*texts: Sequence[Path]) -> None:
    """Refuse a mistyped path before hours are spent.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    for paths in texts:
        if paths:
            find_files(list(paths))


def vocab_origin(vocab: WordVocab | None) -> str:
    """Return, for the record, where the words to predict come from; none: they are counted."""
    if vocab is None:
        return "counted"
    words = "\n".join(vocab.words).encode("utf-8", "surrogatepass")
    return f"sha256 {hashlib.sha256(words).hexdigest()}"


class _Maker:
    """Makes shards of text files, and finds those that are of the same files and settings."""

    def __init__(
        self, text: TextConfig, normalization: Normalization, on_preparation: OnPreparation | None
    ) -> None:
        self.text = text
        self.normalization: Normalization = normalization
        self.on_preparation = on_preparation
        self._sources: dict[tuple[Path, ...], list[dict[str, Any]]] = {}

    @classmethod
    def like(
        cls,
        shards: ShardSet,
        text: TextConfig,
        normalization: Normalization,
        on_preparation: OnPreparation | None,
    ) -> "_Maker":
        """Return a maker that goes on as finished shards were made."""
        facts = shards.metadata.get("tokenizer")
        tokenizer = text.tokenizer if facts is None else TokenizerConfig(**facts)
        if text.tokenizer.name not in (tokenizer.name, TextConfig().tokenizer.name):
            raise ConfigError(
                f"text.tokenizer.name={text.tokenizer.name!r}, but the shards in "
                f"{shards.shard_dir} were made with {tokenizer.name!r}. Leave the tokenizer out, "
                "or give the raw text."
            )
        return cls(
            dataclasses.replace(text, tokenizer=tokenizer),
            shards.metadata.get("normalization", normalization),
            on_preparation,
        )

    def find(
        self, target: Path, paths: Sequence[Path], *, hold_out: bool = False
    ) -> ShardSet | None:
        """Open finished shards in ``target`` if they are what would be made again."""
        if not (target / MANIFEST_NAME).exists():
            return None
        shards = ShardSet.open(target)
        wanted = self._facts(paths, version="")
        found = {
            **shards.metadata,
            "tokenizer": {**shards.metadata.get("tokenizer", {}), "version": ""},
        }
        same = all(found.get(key) == value for key, value in wanted.items())
        return shards if same and (NUM_HELD_OUT in found) == hold_out else None

    def split(
        self, run_dir: Path, paths: Sequence[Path], *, hold_out: bool
    ) -> tuple[ShardSet, ShardSet | None]:
        """Find or write the training shards and, of the same pass, the held-out sentences."""
        shards = self.find(run_dir / SHARDS, paths, hold_out=hold_out)
        if shards is not None:
            if not shards.metadata.get(NUM_HELD_OUT):
                return shards, None
            held_out = self.find(run_dir / VALID, paths, hold_out=True)
            if held_out is not None:
                return shards, held_out
        holder = HoldOut(share=0.02, max_sentences=self.text.valid_sentences)
        shards = self.write(run_dir / SHARDS, paths, holder=holder if hold_out else None)
        if not hold_out:
            return shards, None
        if not holder.sentences:
            log.warning("the corpus is too small to hold anything out: there will be no validation")
            return shards, None
        return shards, _write_anew(holder.sentences, run_dir / VALID, self.text, shards.metadata)

    def write(
        self, target: Path, paths: Sequence[Path], *, holder: HoldOut | None = None
    ) -> ShardSet:
        """Write shards of text files, but for what ``holder`` holds out."""
        report = ReadReport()
        tokenizer = build_tokenizer(self.text.tokenizer)
        metadata = self._facts(paths, version=tokenizer.version)
        read = read_sentences(
            list(paths), tokenizer, normalization=self.normalization, report=report
        )
        sentences = _watched(read, "tokenizing", self.on_preparation)

        def kept(holder: HoldOut) -> Iterator[list[str]]:
            yield from holder.split(sentences)
            metadata[NUM_HELD_OUT] = len(holder.sentences)  # the manifest is written after this

        shards = _write_anew(
            sentences if holder is None else kept(holder), target, self.text, metadata
        )
        log.info(
            "%d lines read, %d sentences, %d words in %d shards",
            report.lines, report.sentences, report.words, len(shards),
        )  # fmt: skip
        return shards

    def _facts(self, paths: Sequence[Path], *, version: str) -> dict[str, Any]:
        key = tuple(paths)
        if key not in self._sources:  # each file is read once for its hash
            self._sources[key] = describe_files(list(paths))
        return {
            "tokenizer": {"name": self.text.tokenizer.name, "version": version},
            "normalization": self.normalization,
            "settings": {
                key: value
                for key, value in dataclasses.asdict(self.text).items()
                if key != "tokenizer"
            },
            "sources": self._sources[key],
        }


def _write_anew(
    sentences: Iterable[list[str]], target: Path, text: TextConfig, metadata: Mapping[str, Any]
) -> ShardSet:
    """Write shards; those of other text in ``target`` are replaced, other files stay."""
    (target / MANIFEST_NAME).unlink(missing_ok=True)
    return write_shards(
        sentences, target, tokens_per_shard=text.tokens_per_shard, metadata=metadata
    )


def _watched(
    sentences: Iterator[list[str]],
    stage: Literal["tokenizing", "counting words"],
    on_preparation: OnPreparation | None,
    *,
    total_words: int | None = None,
) -> Iterator[list[str]]:
    """Yield the sentences, and say now and then how many there were."""
    if on_preparation is None:
        yield from sentences
        return
    number = num_words = 0
    for number, sentence in enumerate(sentences, start=1):
        num_words += len(sentence)
        if number % SENTENCES_AN_EVENT == 0:
            on_preparation(Preparation(stage, number, num_words, total_words))
        yield sentence
    on_preparation(Preparation(stage, number, num_words, total_words))


def _count_words(sentences: Iterable[Sequence[str]], config: VocabConfig) -> WordVocab:
    with WordCounter(max_distinct=MAX_COUNTED) as counter:
        for sentence in sentences:
            counter.add(sentence)
        counts = counter.most_common(max_size=config.max_size, min_count=config.min_count)
    if not counts:
        raise FormatError(
            f"No word occurs {config.min_count} times in this corpus, so the vocabulary would be "
            "empty. Give more text or set vocab.min_count=1."
        )
    return WordVocab.build(counts)
