"""From raw text to shards, vocabulary and held-out sentences in the run directory.

The text is streamed once; a resumed run does not need it.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.corpus.shards import MANIFEST_NAME, ShardSet
from elmokit.corpus.text_shards import (
    NUM_HELD_OUT,
    OnPreparation,
    SentenceReader,
    TextConfig,
    TextShards,
)
from elmokit.errors import CheckedFields, ConfigError, Count, FormatError, InputError
from elmokit.files.sources import STANDARD_INPUT, describe_files, find_files
from elmokit.text.normalization import Normalization
from elmokit.text.sentences import ONE_PROCESS, Workers
from elmokit.text.spelling import SpellingModel
from elmokit.text.vocab_doctor import check_fit, warn_of_unsplit_korean
from elmokit.text.word_counter import WordCounter
from elmokit.text.word_vocab import COPY_AGAIN, WordVocab

log = logging.getLogger(__name__)

SHARDS, VALID, VOCAB, SPELLING = "shards", "valid", "vocab.txt", "spelling.safetensors"
WARM_SENTENCES = 100
MAX_COUNTED = 100_000
MAX_SPELLED = 300_000
"""Words outside the vocabulary from which their spelling is learned."""


@dataclass(frozen=True, kw_only=True)
class VocabConfig(CheckedFields):
    """The words that are predicted."""

    max_size: Count | None = 30_000
    """V without the three specials; the most frequent words are kept. None: no limit."""
    min_count: Count = 2
    """Rarer words are left out."""


@dataclass(frozen=True, kw_only=True)
class TextSources:
    """Files as `describe_files` returns them, or finished ``shards`` instead of ``corpus``."""

    shards: ShardSet | None
    corpus: list[dict[str, Any]]
    valid: list[dict[str, Any]]
    """If empty, a few sentences of the corpus are held out."""


@dataclass(frozen=True)
class PreparedText:
    shards: ShardSet
    vocab: WordVocab
    valid: ShardSet | None
    """Held-out sentences; None for finished shards without validation text."""
    spelling: SpellingModel | None = None
    """How words outside the vocabulary are spelled; None in runs of older versions."""

    def warm_text(self) -> tuple[str, ...]:
        """Return typical sentences to compute the warm start state from."""
        typical = (" ".join(words) for words in self.shards.sentences() if 5 <= len(words) <= 40)
        return tuple(islice(typical, WARM_SENTENCES))


def find_text(
    corpus: Sequence[Path],
    valid: Sequence[Path] = (),
    *,
    may_be_gone: bool = False,
    run_dir: Path | None = None,
) -> TextSources:
    """Find and hash text: files, directories or patterns, or one directory of finished shards.

    What a folder of text has below ``run_dir`` is left out: the run itself wrote it.
    """
    if STANDARD_INPUT in corpus and STANDARD_INPUT in valid:
        raise InputError("The corpus and --valid cannot both be standard input (-).")
    beside = [*(corpus if len(corpus) > 1 else ()), *valid]
    if (shard_dir := next((path for path in beside if is_finished([path])), None)) is not None:
        raise InputError(
            f"{shard_dir} holds finished shards: give it alone, or the text that it was made of."
        )
    shards = ShardSet.open(corpus[0]) if is_finished(corpus) else None
    exclude = [] if run_dir is None else [run_dir]

    def described(paths: Sequence[Path]) -> list[dict[str, Any]]:
        return describe_files(find_files(list(paths), missing_ok=may_be_gone, exclude=exclude))

    return TextSources(
        shards=shards,
        corpus=[] if shards else described(corpus),
        valid=described(valid) if valid else [],
    )


def prepare_text(
    sources: TextSources,
    run_dir: Path,
    *,
    text: TextConfig,
    vocab: VocabConfig,
    normalization: Normalization,
    normalization_is_fixed: bool = False,
    fixed_vocab: WordVocab | None = None,
    on_preparation: OnPreparation | None = None,
    workers: Workers = ONE_PROCESS,
    reader: SentenceReader | None = None,
) -> PreparedText:
    """Write shards, vocabulary and validation sentences to ``run_dir``.

    ``normalization`` gives way to that of finished shards, unless it is fixed; ``fixed_vocab``
    replaces counting; ``reader`` reads files that are no raw text.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    valid_dir, held_out = run_dir / VALID, None
    text_shards = TextShards(text, normalization, on_preparation, workers, reader)
    if sources.shards is not None:
        if text.replay is not None:
            raise InputError("text.replay is mixed into raw text, not finished shards.")
        if text.field is not None:
            log.warning("text.field (--column) has no effect on finished shards")
        shards = sources.shards
        text_shards = text_shards.like(shards, normalization_is_fixed=normalization_is_fixed)
        for unused in (run_dir / SHARDS, valid_dir):  # of an earlier preparation, of other text
            if unused.resolve() != shards.shard_dir.resolve():
                (unused / MANIFEST_NAME).unlink(missing_ok=True)
        if not sources.valid:
            log.warning("nothing is held out from %s, so there is no validation", shards.shard_dir)
    else:
        shards, held_out = text_shards.make(
            sources.corpus, run_dir / SHARDS, held_out_dir=None if sources.valid else valid_dir
        )
    if sources.valid:
        held_out, _ = text_shards.without_replay().make(sources.valid, valid_dir)
    words = _vocabulary(shards, vocab, fixed_vocab)
    words.write(run_dir / VOCAB)
    spelling = _spelling(shards, words)
    spelling.write(run_dir / SPELLING)
    return PreparedText(shards, words, held_out, spelling)


def open_text(corpus: Sequence[Path], run_dir: Path) -> PreparedText:
    """Open what `prepare_text` wrote, and finished shards, without touching text files."""
    if is_finished(corpus):
        shards = ShardSet.open(corpus[0])
        has_valid = (run_dir / VALID / MANIFEST_NAME).exists()
    elif (run_dir / SHARDS / MANIFEST_NAME).exists():
        shards = ShardSet.open(run_dir / SHARDS)
        has_valid = shards.metadata.get(NUM_HELD_OUT) != 0
    else:
        raise FileNotFoundError(
            f"There are no finished shards in {run_dir / SHARDS} or {corpus[0]}. The run in "
            f"{run_dir} needs those that it began with until it ends."
        )
    valid = ShardSet.open(run_dir / VALID) if has_valid else None
    vocab = WordVocab.read(run_dir / VOCAB, advice=COPY_AGAIN)
    spelling_path = run_dir / SPELLING  # runs of older versions have none
    spelling = SpellingModel.read(spelling_path) if spelling_path.exists() else None
    return PreparedText(shards, vocab, valid, spelling)


def _vocabulary(shards: ShardSet, config: VocabConfig, fixed_vocab: WordVocab | None) -> WordVocab:
    """Return the frequent words of the text, or the fixed vocabulary if it fits the text."""
    with WordCounter(max_distinct=MAX_COUNTED) as counter:
        for shard in shards:
            counter.add_counts(shard.words, shard.counts())
        if fixed_vocab is None:
            frequent = counter.most_common(max_size=config.max_size, min_count=config.min_count)
            if not frequent:
                raise FormatError(
                    f"No word occurs at least {config.min_count} times in this corpus "
                    "(vocab.min_count)."
                )
            vocab = WordVocab.build(frequent)
        else:
            check_fit(fixed_vocab, counter)
            vocab = fixed_vocab
    if shards.tokenizer is not None and shards.tokenizer.name == "simple":
        warn_of_unsplit_korean(vocab)
    return vocab


def _spelling(shards: ShardSet, vocab: WordVocab) -> SpellingModel:
    """Learn how words outside the vocabulary are spelled, from shards all over the text."""
    words: dict[str, None] = {}
    for index in np.random.default_rng(0).permutation(len(shards)).tolist():
        if len(words) >= MAX_SPELLED:
            break
        words |= dict.fromkeys(word for word in shards.load(index).words if word not in vocab)
    return SpellingModel.train(list(words) or vocab.words)


def check_same_text(text: PreparedText, sources: TextSources, run_dir: Path) -> None:
    """Refuse to continue a run whose text files have changed; missing files are not needed."""
    for shards, present in ((text.shards, sources.corpus), (text.valid, sources.valid)):
        if shards is None or not present:
            continue
        changed = _changed_file(shards.metadata.get("sources", []), present)
        if changed is not None:
            raise ConfigError(
                f"{changed} has changed since the run in {run_dir} read it. Restore it or move it "
                f"away: the old text is in {shards.shard_dir}. New text needs another directory."
            )


def _changed_file(
    recorded: Sequence[Mapping[str, Any]], present: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return the first file that was changed, removed or added."""
    for then, now in zip_longest(recorded, present, fillvalue={}):
        for key in ("num_bytes", "sha256"):
            was, is_now = then.get(key, "none"), now.get(key, "none")
            if None not in (was, is_now) and was != is_now:
                return (now or then).get("path")
    return None


def is_finished(corpus: Sequence[Path]) -> bool:
    return len(corpus) == 1 and (corpus[0] / MANIFEST_NAME).exists()
