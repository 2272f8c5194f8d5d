"""Perplexity of both directions of a language model, from summed log-likelihoods."""

import math
from dataclasses import dataclass

from elmokit.errors import InputError


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

    def report(
        self, *, vocabulary: int, state: str, precision: str = "fp32", is_spelled: bool = False
    ) -> PerplexityReport:
        """Return the figures."""
        if self.tokens == 0:
            raise InputError(
                "There is no text to score: no sentence with at least one word was found."
            )
        forward, backward = self.forward_nats / self.tokens, self.backward_nats / self.tokens
        mean = (forward + backward) / 2
        bits = (mean * self.tokens + self.spelling_nats) / math.log(2)
        num_bytes = self.text_bytes + self.tokens
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
            vocabulary=vocabulary, state=state, precision=precision, is_spelled=is_spelled,
        )  # fmt: skip


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf
