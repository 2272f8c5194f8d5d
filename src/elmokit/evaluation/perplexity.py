"""Perplexity of a model on a text by the exact softmax: sums, figures, reports."""

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np

from elmokit.errors import InputError
from elmokit.evaluation.text_scorer import (
    BATCH_SENTENCES,
    ScoredSentences,
    ScoringPrecision,
    TextScorer,
    UnknownWords,
)
from elmokit.inference.layers_and_states import StartState
from elmokit.text.given_sentences import GivenSentence, check_is_list, split_sentences
from elmokit.weights.stored_bilm import LoadedBiLM, open_bilm

log = logging.getLogger(__name__)

MUCH_UNKNOWN = 0.3
"""Share of unknown words above which a perplexity is misleading; 0.05 is usual in the domain."""


@dataclass(frozen=True, kw_only=True)
class PerplexityReport:
    """How well a biLM predicts a text."""

    forward: float
    """exp of the forward model's mean loss in nats per target."""
    backward: float
    """The same for the backward model."""
    mean: float
    """exp of the mean loss: the geometric mean of ``forward`` and ``backward``."""
    mean_known: float
    """``mean`` over the targets that are in the vocabulary, without those scored as <UNK>."""
    tokens: int
    """Targets of one direction: the words and one sentence end per sentence."""
    sentences: int
    oov_rate: float
    """Share of words, without sentence ends, that are scored as <UNK>."""
    bits_per_byte: float
    """Mean loss in bits, per UTF-8 byte of the words and one separator per target.

    With the spelling of unknown words (`is_spelled`), it can be compared between vocabularies;
    without, it is a lower bound: an unknown word costs no more than <UNK>, whatever its bytes.
    """
    bits_per_byte_spelled: float
    """The same; without a model of spellings, with 8 bits for each byte of an unknown word: an
    upper bound."""
    vocabulary: int
    """Its size V; perplexities over different vocabularies are not comparable."""
    state: str
    """The initial state of each sentence: ``warm`` or ``reset``."""
    precision: str = "fp32"
    """Of the products: ``fp32`` or ``bf16``."""
    is_spelled: bool = False
    """Whether bits per byte have the spelling of unknown words."""


@dataclass
class PerplexityCounter:
    """The sums behind a report."""

    forward_nats: float = 0.0
    backward_nats: float = 0.0
    tokens: int = 0
    sentences: int = 0
    unknown_words: int = 0
    text_bytes: int = 0
    """UTF-8 bytes of all words."""
    unknown_bytes: int = 0
    """Those of unknown words."""
    unknown_nats: float = 0.0
    """-ln p of <UNK> where unknown words are, the mean of both directions; in the sums above."""
    spelling_nats: float = 0.0
    """-ln p of the spellings of unknown words, of one direction."""

    def add(self, scored: ScoredSentences) -> None:
        """Add scored sentences to the sums, in fp64: a text has millions of targets."""
        self.forward_nats += float(scored.nats["forward"].sum(dtype=np.float64))
        self.backward_nats += float(scored.nats["backward"].sum(dtype=np.float64))
        self.spelling_nats += float(scored.spelling.sum())
        tokens = scored.tokens
        # a sentence end is no unknown word, also where the vocabulary has none
        is_unknown = np.concatenate([
            np.append(scored.is_unknown[sentence[1:-1]], False) for sentence in tokens.sentences
        ])  # fmt: skip
        both = scored.nats["forward"][is_unknown] + scored.nats["backward"][is_unknown]
        self.unknown_nats += float(both.sum(dtype=np.float64)) / 2
        self.unknown_words += int(is_unknown.sum())
        num_bytes = np.array([len(word.encode("utf-8", "ignore")) for word in tokens.words])
        for sentence in tokens.sentences:
            words = sentence[1:-1]
            self.sentences += 1
            self.tokens += len(words) + 1
            self.text_bytes += int(num_bytes[words].sum())
            self.unknown_bytes += int(num_bytes[words[scored.is_unknown[words]]].sum())

    def report(self, scorer: TextScorer) -> PerplexityReport:
        """Return the figures of what ``scorer`` scored."""
        if self.tokens == 0:
            raise InputError(
                "There is no text to score: no sentence with at least one word was found."
            )
        forward, backward = self.forward_nats / self.tokens, self.backward_nats / self.tokens
        mean = (forward + backward) / 2
        bits = (mean * self.tokens + self.spelling_nats) / math.log(2)
        num_bytes = self.text_bytes + self.tokens
        is_spelled = scorer.spelling is not None
        unspelled = 0 if is_spelled else 8 * self.unknown_bytes
        return PerplexityReport(
            forward=_exp(forward), backward=_exp(backward), mean=_exp(mean),
            mean_known=_exp(
                (mean * self.tokens - self.unknown_nats) / max(1, self.tokens - self.unknown_words)
            ),
            tokens=self.tokens, sentences=self.sentences,
            oov_rate=self.unknown_words / max(1, self.tokens - self.sentences),
            bits_per_byte=bits / num_bytes,
            bits_per_byte_spelled=(bits + unspelled) / num_bytes,
            vocabulary=len(scorer.vocab), state=scorer.state, precision=scorer.precision,
            is_spelled=is_spelled,
        )  # fmt: skip


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf


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
    words = split_sentences(sentences, model.tokenize)
    return perplexity_of_words(scorer, words, on_sentences)


def perplexity_of_words(
    scorer: TextScorer,
    sentences: Iterable[Sequence[str]],
    on_sentences: Callable[[int], None] = lambda done: None,
) -> PerplexityReport:
    """Score sentences of words; see `perplexity`."""
    counter = PerplexityCounter()
    for scored in scorer.score(sentences, on_sentences=on_sentences):
        counter.add(scored)
    return counter.report(scorer)


def warn_of_unknown(report: PerplexityReport) -> None:
    """Warn if so many words are unknown that the figures say little."""
    if report.oov_rate > MUCH_UNKNOWN:
        log.warning(
            "%.0f %% of the words are unknown to the model: these figures mostly show how well it "
            "predicts <UNK>. Is the text in its language, and split into words by its tokenizer?",
            100 * report.oov_rate,
        )
