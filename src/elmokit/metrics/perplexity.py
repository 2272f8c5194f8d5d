"""Perplexity of both directions of a language model, from summed log-likelihoods."""

import math
from dataclasses import dataclass

from elmokit.errors import InputError


@dataclass(frozen=True, kw_only=True)
class PerplexityReport:
    """How well a biLM predicts a text; a property of model and text, not of how it was computed."""

    forward: float
    """exp of the forward model's mean loss in nats per target."""
    backward: float
    """The same for the backward model."""
    mean: float
    """exp of the mean of both losses: the geometric mean of ``forward`` and ``backward``."""
    tokens: int
    """M, targets of one direction: every word and one sentence end a sentence, each scored once."""
    sentences: int
    oov_rate: float
    """Share of words, sentence ends aside, that the vocabulary lacks; they are scored as <UNK>."""
    bits_per_byte: float
    """Mean of both losses in bits, by the UTF-8 bytes of the words and one separator per target."""
    vocabulary: int
    """V, lines of the vocabulary: perplexities over different vocabularies are not comparable."""
    state: str
    """What every sentence started from: ``warm`` or ``reset``."""


@dataclass
class PerplexityCounter:
    """Sums from which the report is made."""

    forward_nats: float = 0.0
    backward_nats: float = 0.0
    tokens: int = 0
    sentences: int = 0
    unknown_words: int = 0
    text_bytes: int = 0
    """UTF-8 bytes of all words."""

    def report(self, *, vocabulary: int, state: str) -> PerplexityReport:
        """Return the figures.

        Raises:
            ValueError: if no target was scored.
        """
        if self.tokens == 0:
            raise InputError(
                "There is no text to score: no sentence with at least one word was found."
            )
        forward, backward = self.forward_nats / self.tokens, self.backward_nats / self.tokens
        mean = (forward + backward) / 2
        num_words = self.tokens - self.sentences
        return PerplexityReport(
            forward=_exp(forward),
            backward=_exp(backward),
            mean=_exp(mean),
            tokens=self.tokens,
            sentences=self.sentences,
            oov_rate=self.unknown_words / max(1, num_words),
            bits_per_byte=mean * self.tokens / math.log(2) / (self.text_bytes + self.tokens),
            vocabulary=vocabulary,
            state=state,
        )


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf
