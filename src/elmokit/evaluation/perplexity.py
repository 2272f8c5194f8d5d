"""Perplexity of a model on a text by the exact softmax; `TextScorer` scores the text."""

import logging
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from elmokit.corpus.readers import ReadReport, read_sentences
from elmokit.evaluation.text_scorer import (
    BATCH_SENTENCES,
    ScoredSentences,
    ScoringPrecision,
    TextScorer,
    UnknownWords,
)
from elmokit.inference.state import StartState
from elmokit.metrics.perplexity import PerplexityCounter, PerplexityReport
from elmokit.text.given_sentences import GivenSentence, check_is_list, split_sentences
from elmokit.text.special_words import watched
from elmokit.text.tokenizers.protocol import Tokenizer
from elmokit.weights.stored_bilm import LoadedBiLM, open_bilm

log = logging.getLogger(__name__)

MUCH_UNKNOWN = 0.3
"""Share of unknown words above which a perplexity is misleading; 0.05 is usual in the domain."""


def perplexity(
    model: LoadedBiLM | str | PathLike[str],
    sentences: Iterable[GivenSentence],
    *,
    batch_size: int = BATCH_SENTENCES,
    state: StartState | str = "warm",
    precision: ScoringPrecision | str = "auto",
    unknown: UnknownWords | str = "auto",
    on_sentences: Callable[[int], None] = lambda done: None,
) -> PerplexityReport:
    """Score every word and every sentence end of ``sentences`` once, in both directions.

    Args:
        model: With vocabulary and softmax; or its directory or name.
        sentences: Strings, which the model's tokenizer splits, or lists of words; empty ones are
            skipped.
        batch_size: Most sentences computed together; does not affect the result.
        state: Start of every sentence: ``warm``, the state after ordinary text, or ``reset``.
        precision: ``bf16`` is faster and changes those of packaged models by less than 0.1 %;
            ``auto`` uses it on CPUs where it is faster than fp32.
        unknown: Whether bits per byte have the spelling of unknown words: ``spelled``, ``unk``, or
            ``auto``: if the model knows it. Perplexities count ``<UNK>`` alone.
        on_sentences: Called with the number of sentences done.

    Raises:
        ValueError: for an unknown option, a model without vocabulary or softmax, or no text.
        TypeError: if ``sentences`` is one string, or a sentence holds anything but strings.
    """
    model = open_bilm(model)
    check_is_list(sentences)
    scorer = TextScorer(
        model, batch_size=batch_size, state=state, precision=precision, unknown=unknown
    )
    words = split_sentences(watched(sentences), model.tokenize)
    return perplexity_of_words(scorer, words, on_sentences)


def count(scored: ScoredSentences, counter: PerplexityCounter) -> None:
    # In fp64, because a text has millions of targets.
    """Add scored sentences to the sums."""
    counter.forward_nats += float(scored.nats["forward"].sum(dtype=np.float64))
    counter.backward_nats += float(scored.nats["backward"].sum(dtype=np.float64))
    counter.spelling_nats += float(scored.spelling.sum())
    tokens = scored.tokens
    # a sentence end is no unknown word, also where the vocabulary has none
    is_unknown = np.concatenate([
        np.append(scored.is_unknown[sentence[1:-1]], False) for sentence in tokens.sentences
    ])  # fmt: skip
    both = scored.nats["forward"][is_unknown] + scored.nats["backward"][is_unknown]
    counter.unknown_nats += float(both.sum(dtype=np.float64)) / 2
    counter.unknown_words += int(is_unknown.sum())
    num_bytes = np.array([len(word.encode("utf-8", "ignore")) for word in tokens.words])
    for sentence in tokens.sentences:
        words = sentence[1:-1]
        counter.sentences += 1
        counter.tokens += len(words) + 1
        counter.text_bytes += int(num_bytes[words].sum())
        counter.unknown_bytes += int(num_bytes[words[scored.is_unknown[words]]].sum())


def perplexity_of_files(
    scorer: TextScorer,
    tokenizer: Tokenizer,
    paths: Sequence[Path],
    *,
    read: ReadReport | None = None,
    text_field: str | None = None,
) -> PerplexityReport:
    """Score raw text files, read and counted like a corpus; warn if too many words are unknown."""
    sentences = read_sentences(
        paths, tokenizer, normalization=scorer.form, report=read, text_field=text_field
    )
    report = perplexity_of_words(scorer, sentences)
    warn_of_unknown(report)
    return report


def perplexity_of_words(
    scorer: TextScorer,
    sentences: Iterable[Sequence[str]],
    on_sentences: Callable[[int], None] = lambda done: None,
) -> PerplexityReport:
    """Score sentences of words; see `perplexity`."""
    counter = PerplexityCounter()
    for scored in scorer.score(sentences, on_sentences=on_sentences):
        count(scored, counter)
    return report_of(counter, scorer)


def report_of(counter: PerplexityCounter, scorer: TextScorer) -> PerplexityReport:
    """Return the figures of what a scorer scored."""
    return counter.report(
        vocabulary=len(scorer.vocab), state=scorer.state, precision=scorer.precision,
        is_spelled=scorer.spelling is not None,
    )  # fmt: skip


def warn_of_unknown(report: PerplexityReport) -> None:
    """Warn if so many words are unknown that the figures say little."""
    if report.oov_rate > MUCH_UNKNOWN:
        log.warning(
            "%.0f %% of the words are unknown to the model: these figures mostly show how well it "
            "predicts <UNK>. Is the text in its language, and split into words by its tokenizer?",
            100 * report.oov_rate,
        )
