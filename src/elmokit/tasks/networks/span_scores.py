"""Scores of coreference: which spans are mentions, and which earlier span each one refers to.

P of a document's N spans are kept, in text order; G is the width of a span's vector, H that of the
hidden layers. A span's candidate antecedents are the K kept spans before it, or none, which scores
0. The first layers are linear, so their parts are computed once per token or span, not once per
span or pair.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmokit.tasks.networks.encoder import draw_weights
from elmokit.tasks.networks.spans import NUM_DISTANCE_BUCKETS, SpanRepresentation, distance_buckets

SPANS_TOGETHER = 1 << 14
"""Spans scored at once as mentions, without gradient."""
ROWS_TOGETHER = 16
"""Spans whose antecedents are scored at once: few, so that what is computed of them stays in cache.
"""


class MentionScore(nn.Module):
    """How likely a span is a mention: two hidden layers over its vector, (N, G) -> (N,).

    Source: Lee et al. 2017, section 3.
    """

    def __init__(self, span_dim: int, hidden_dim: int, *, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(span_dim, hidden_dim)
        self.second = nn.Linear(hidden_dim, hidden_dim)
        self.to_score = nn.Linear(hidden_dim, 1)
        self.dropout = nn.Dropout(dropout)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_weights((self.first, self.second, self.to_score), generator)

    def forward(self, vectors: Float[Tensor, "N G"]) -> Float[Tensor, " N"]:
        return self._rest(self.first(vectors))

    @torch.no_grad()
    def without_vectors(
        self,
        spans: SpanRepresentation,
        states: Float[Tensor, "W X"],
        embeddings: Float[Tensor, "W E"],
        starts: Int[Tensor, " N"],
        ends: Int[Tensor, " N"],
        *,
        together: int = SPANS_TOGETHER,
    ) -> Float[Tensor, " N"]:
        """Return the scores of spans without making their vectors, to choose spans in less memory.

        Dropout, in training, lets other spans be chosen now and then.
        """
        state_dim, width_dim = states.shape[1], spans.width_embedding.embedding_dim
        parts = [state_dim, state_dim, embeddings.shape[1], width_dim]
        first, last, head, width = self.first.weight.split(parts, dim=1)
        of_first = states @ first.T + self.first.bias  # (W, H)
        of_last, of_head = states @ last.T, embeddings @ head.T
        of_width = spans.width_embedding.weight @ width.T
        scores = states.new_zeros(starts.shape[0])
        for at in range(0, starts.shape[0], together):
            some = slice(at, at + together)
            vectors = spans(states, of_head, starts[some], ends[some])  # [first; last; H; width]
            first_layer = vectors[:, 2 * state_dim : vectors.shape[1] - width_dim]
            first_layer = first_layer + of_first[starts[some]] + of_last[ends[some] - 1]
            first_layer = first_layer + of_width[ends[some] - starts[some]]
            scores[some] = self._rest(first_layer)
        return scores

    def _rest(self, first_layer: Tensor) -> Tensor:
        hidden = self.dropout(torch.relu(first_layer))
        hidden = self.dropout(torch.relu(self.second(hidden)))
        return self.to_score(hidden).squeeze(1)


@dataclass(frozen=True)
class AntecedentScores:
    """Scores of consecutive spans with the spans before them."""

    first_span: int
    """Row r is span ``first_span + r``."""
    first_antecedent: int
    """Column c is span ``first_antecedent + c``."""
    scores: Float[Tensor, "R C"]
    """-inf where the column is not one of the K spans before the row."""

    @property
    def spans(self) -> slice:
        """The rows, as spans."""
        return slice(self.first_span, self.first_span + self.scores.shape[0])

    @property
    def antecedents(self) -> slice:
        """The columns, as spans."""
        return slice(self.first_antecedent, self.first_antecedent + self.scores.shape[1])


class AntecedentScore(nn.Module):
    """How likely span j is the antecedent of span i: two hidden layers over the pair.

    They read ``[g_i; g_j; g_i ⊙ g_j; distance; speaker; genre]``: bucketed distance in kept spans;
    whether the speaker is the same; the kind of text, 1 to ``num_genres``. Unknown features are
    zero vectors. Dropout of features and hidden units is the same for all pairs of a document.

    Source: Lee et al. 2017, sections 3 and 4.
    """

    def __init__(
        self,
        span_dim: int,
        hidden_dim: int,
        *,
        max_antecedents: int,
        feature_dim: int = 20,
        num_genres: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.max_antecedents = max_antecedents
        self.distance = nn.Embedding(NUM_DISTANCE_BUCKETS, feature_dim)
        self.speaker = nn.Embedding(3, feature_dim, padding_idx=0)  # unknown, other, same
        self.genre = nn.Embedding(num_genres + 1, feature_dim, padding_idx=0)
        self.first = nn.Linear(3 * span_dim + 3 * feature_dim, hidden_dim)
        self.second = nn.Linear(hidden_dim, hidden_dim)
        self.to_score = nn.Linear(hidden_dim, 1)
        self.dropout = nn.Dropout(dropout)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh weights that make no antecedent as likely as the K antecedents together."""
        draw_weights((self.first, self.second, self.to_score), generator)
        nn.init.constant_(self.to_score.bias, -math.log(self.max_antecedents))
        for feature in (self.distance, self.speaker, self.genre):
            nn.init.xavier_uniform_(feature.weight, generator=generator)
        with torch.no_grad():
            self.speaker.weight[0] = 0
            self.genre.weight[0] = 0

    def forward(
        self,
        vectors: Float[Tensor, "P G"],
        mentions: Float[Tensor, " P"],
        speakers: Int[Tensor, " P"],
        genre: int,
        *,
        together: int = ROWS_TOGETHER,
    ) -> Iterator[AntecedentScores]:
        """Yield the scores of all spans with their antecedents, ``together`` spans at a time.

        A score is the sum for the pair and both mentions. Memory of a block does not depend on P.

        Args:
            vectors: Of the kept spans, in text order.
            mentions: Their scores as mentions.
            speakers: A number for each speaker; 0: unknown.
            genre: Of the text; 0: unknown.
            together: Spans in a block.
        """
        if not len(vectors):
            return
        terms = self._terms(vectors, genre, together)
        known = speakers if speakers.any() else None
        for start in range(0, len(vectors), together):
            yield self._block(start, together, vectors, mentions, known, terms)

    def _terms(self, vectors: Tensor, genre: int, together: int) -> "_Terms":
        span_dim, feature_dim = vectors.shape[1], self.distance.embedding_dim
        parts = [span_dim, span_dim, span_dim, feature_dim, feature_dim, feature_dim]
        this, other, product, distance, speaker, text = self.first.weight.split(parts, dim=1)
        numbers = torch.arange(together + self.max_antecedents, device=vectors.device)
        offsets = numbers[:together, None] + self.max_antecedents - numbers
        of_text = self.dropout(self.genre(numbers.new_tensor(genre))) @ text.T + self.first.bias
        of_distance = self.dropout(self.distance.weight) @ distance.T
        # dropping a hidden unit for all pairs means dropping the weights that read it
        read = self.dropout(vectors.new_ones(2, self.first.out_features))
        return _Terms(
            this=vectors @ this.T + of_text,
            other=vectors @ other.T,
            product=product,
            distance=functional.embedding(distance_buckets(offsets.clamp(min=0)), of_distance),
            speaker=self.dropout(self.speaker(numbers.new_tensor([0, 1, 2]))) @ speaker.T,
            is_antecedent=(offsets > 0) & (offsets <= self.max_antecedents),
            second=self.second.weight * read[0],
            to_score=self.to_score.weight * read[1],
        )

    def _block(
        self,
        start: int,
        together: int,
        vectors: Tensor,
        mentions: Tensor,
        speakers: Tensor | None,
        terms: "_Terms",
    ) -> AntecedentScores:
        end, first = min(start + together, len(vectors)), max(0, start - self.max_antecedents)
        rows, columns = slice(start, end), slice(first, end)
        at = self.max_antecedents - (start - first)  # first column among all offsets
        near = (slice(0, end - start), slice(at, at + end - first))
        # weights times g_i, (R, H, G), are fewer numbers than the products of pairs, (R, C, G)
        weights = vectors[rows, None] * terms.product
        hidden = (weights @ vectors[columns].T).transpose(1, 2)  # (R, C, H)
        hidden += terms.distance[near]
        hidden += terms.this[rows, None]
        hidden += terms.other[columns]
        if speakers is not None:
            same = _same_speaker(speakers[rows], speakers[columns])
            hidden += functional.embedding(same, terms.speaker)
        hidden = functional.linear(hidden.relu_(), terms.second, self.second.bias).relu_()
        scores = functional.linear(hidden, terms.to_score, self.to_score.bias).squeeze(2)
        scores = scores + mentions[rows, None] + mentions[columns]
        return AntecedentScores(
            start, first, scores.masked_fill(~terms.is_antecedent[near], -torch.inf)
        )


@dataclass(frozen=True, kw_only=True)
class _Terms:
    """What the first layer adds up for the pairs of a document, and later weights with dropout."""

    this: Tensor
    """(P, H): of the span itself, with the genre and the bias."""
    other: Tensor
    """(P, H): of its antecedent."""
    product: Tensor
    """(H, G): weights of the product of both vectors."""
    distance: Tensor
    """(R, R + K, H): the same in all blocks, whose columns start K spans before their rows."""
    speaker: Tensor
    """(3, H)."""
    is_antecedent: Tensor
    """(R, R + K): whether the column is one of the K before the row."""
    second: Tensor
    """(H, H)."""
    to_score: Tensor
    """(1, H)."""


def antecedent_loss(block: AntecedentScores, clusters: Int[Tensor, " P"]) -> Float[Tensor, " R"]:
    """Return the negative log-probability of all correct antecedents of each span in a block.

    ``clusters`` numbers the clusters of all kept spans, 0 for none. If no antecedent is in the
    span's own cluster, having none is correct.

    Source: Lee et al. 2017, section 5.
    """
    mine, theirs = clusters[block.spans, None], clusters[block.antecedents]
    is_correct = (mine == theirs) & (mine > 0) & block.scores.isfinite()
    has_none = ~is_correct.any(dim=1, keepdim=True)
    scores = functional.pad(block.scores, (1, 0))  # having none scores 0
    correct = scores.masked_fill(~torch.cat((has_none, is_correct), dim=1), -torch.inf)
    return scores.logsumexp(dim=1) - correct.logsumexp(dim=1)


def best_antecedents(block: AntecedentScores) -> Int[Tensor, " R"]:
    """Return the best antecedent of each span in a block; -1 if no score is above 0."""
    best = block.scores.max(dim=1)
    return torch.where(best.values > 0, best.indices + block.first_antecedent, -1)


def _same_speaker(rows: Int[Tensor, " R"], columns: Int[Tensor, " C"]) -> Int[Tensor, "R C"]:
    """Return 0 where a speaker is unknown, 1 for different speakers, 2 for the same."""
    is_known = (rows[:, None] > 0) & (columns > 0)
    return is_known * (1 + (rows[:, None] == columns).long())
