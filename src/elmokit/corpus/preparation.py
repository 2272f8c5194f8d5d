"""From raw text to what training reads: tokenized shards, a vocabulary, held-out sentences.

All of it stands in the run directory; the text is read once, streamed, and a resumed run finds
the rest there.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from elmokit.corpus.shards import MANIFEST_NAME, ShardSet
from elmokit.corpus.text_shards import (
    NUM_HELD_OUT,
    SHARDS,
    VALID,
    OnPreparation,
    ShardMaker,
    TextConfig,
    watched,
)
from elmokit.errors import ConfigError, FormatError
from elmokit.files.changes import changed_file
from elmokit.files.hashing import text_sha256
from elmokit.files.sources import find_files
from elmokit.text.char_vocab import Normalization
from elmokit.text.word_counter import WordCounter
from elmokit.text.word_vocab import WordVocab

log = logging.getLogger(__name__)

VOCAB = "vocab.txt"
WARM_SENTENCES = 100
MAX_COUNTED = 100_000
"""Distinct words counted in memory at once."""


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
        maker = ShardMaker.like(shards, text, normalization, on_preparation)
        if not valid:
            log.warning("%s is used as it is: nothing is held out, no validation", corpus[0])
    else:
        maker = ShardMaker(text, normalization, on_preparation)
        shards, held_out = maker.split(run_dir, corpus, hold_out=not valid)
    if valid:
        held_out = maker.find(run_dir / VALID, valid) or maker.write(run_dir / VALID, valid)
    if fixed_vocab is None:
        sentences = watched(
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
    words = "\n".join(vocab.words)
    return f"sha256 {text_sha256(words)}"


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
