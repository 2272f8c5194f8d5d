"""The network of coreference: Lee et al. 2017 as Peters et al. 2018 use it.

A vector for each span of words → the spans most likely to be mentions → the earlier span that each
of them refers to. Spans are ``[start, end)`` and count the W real tokens of a document from 0,
across sentences. G is the width of a span's vector, H that of the hidden layers. P of the N spans
are kept, in text order; candidate antecedents of a kept span are the K kept spans before it, or
none, which scores 0.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.masking import masked_softmax
from elmokit.shapes import Float, Int
from elmokit.tasks.formats.conll import Clusters, CorefDocument, Mention
from elmokit.tasks.inputs.token_inputs import TokenBatch
from elmokit.tasks.networks.encoder import (
    SentenceEncoder,
    TaskModel,
    VariationalDropout,
    draw_weights,
)
from elmokit.tasks.task import Answer, Widths, no_probs

MAX_SPAN_WORDS = 10  # of the longest mention that can be found
SPANS_PER_WORD = 0.4  # kept spans per word of the document
MAX_TRAINING_SPANS = 800
"""Kept spans in one update, to bound memory; exceeded only by more gold mentions than that."""
MAX_ANTECEDENTS = 250  # kept spans before a span that may be its antecedent
SPANS_TOGETHER = 1 << 14  # spans scored at once as mentions, without gradient
SCORER_SHARE = 0.75  # width of the layers that score spans, as a share of the biLSTM's
FEATURE_DIM = 20  # width of the vectors for width, distance, speaker and genre
LEXICAL_DROPOUT = 0.5  # for static vectors and characters; ELMo's is a setting of the inputs
_BUCKET_STARTS = (1, 2, 3, 4, 5, 8, 16, 32, 64)
FRESH_STD = 0.02  # standard deviation of fresh width vectors
ROWS_TOGETHER = 16
"""Spans whose antecedents are scored at once: few, so that their numbers stay in cache."""


def enumerate_spans(
    sentence_lengths: Int[Tensor, " S"], *, max_width: int
) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
    """Return starts and ends of all spans within a sentence, ordered by start and then by end."""
    device = sentence_lengths.device
    borders = sentence_lengths.cumsum(dim=0)  # (S,): end of each sentence
    limits = borders.repeat_interleave(sentence_lengths)  # (W,): end of each token's sentence
    starts = torch.arange(limits.shape[0], device=device).unsqueeze(1).expand(-1, max_width)
    ends = starts + torch.arange(1, max_width + 1, device=device)  # (W, max_width)
    inside = ends <= limits.unsqueeze(1)
    return starts[inside], ends[inside]


def distance_buckets(distances: Int[Tensor, "*Shape"]) -> Int[Tensor, "*Shape"]:
    """Return the bucket of each distance: 0, 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63, 64+."""
    starts = torch.tensor(_BUCKET_STARTS, device=distances.device)
    return torch.bucketize(distances, starts, right=True)


class SpanRepresentation(nn.Module):
    """One vector per span: [first state; last state; attended head; width].

    The head is the mean of the embeddings inside the span, weighted by a softmax over one learned
    score of each token's state. No span is wider than ``max_width``.

    Shape: states (W, X), embeddings (W, E), starts (N,), ends (N,) -> (N, 2X + E + width_dim).
    Source: Lee et al. 2017, section 4.
    """

    def __init__(
        self, state_dim: int, embedding_dim: int, *, max_width: int, width_dim: int = 20
    ) -> None:
        super().__init__()
        self.max_width = max_width
        self.head_score = nn.Linear(state_dim, 1, bias=False)  # a bias cancels out
        self.width_embedding = nn.Embedding(max_width + 1, width_dim, padding_idx=0)
        self.output_dim = 2 * state_dim + embedding_dim + width_dim

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.xavier_uniform_(self.head_score.weight, generator=generator)
        nn.init.normal_(self.width_embedding.weight, std=FRESH_STD, generator=generator)
        with torch.no_grad():
            self.width_embedding.weight[0] = 0

    def forward(
        self, states: Float[Tensor, "W X"], embeddings: Float[Tensor, "W E"],
        starts: Int[Tensor, " N"], ends: Int[Tensor, " N"],
    ) -> Float[Tensor, "N G"]:  # fmt: skip
        if starts.shape[0] == 0:
            return states.new_zeros(0, self.output_dim)
        tokens = starts.unsqueeze(1) + torch.arange(self.max_width, device=starts.device)
        inside = tokens < ends.unsqueeze(1)  # (N, max_width)
        tokens = tokens.masked_fill(~inside, 0)
        weights = masked_softmax(self.head_score(states).squeeze(1)[tokens], inside)
        # This sums weighted rows without copying the embedding for each span and token.
        heads = functional.embedding_bag(
            tokens, embeddings, per_sample_weights=weights.to(embeddings.dtype), mode="sum"
        )
        widths = self.width_embedding(ends - starts)
        return torch.cat((states[starts], states[ends - 1], heads, widths), dim=1)


class MentionScore(nn.Module):
    """How likely a span is a mention: two hidden layers over its vector, (N, G) -> (N,)."""

    def __init__(self, span_dim: int, hidden_dim: int, *, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(span_dim, hidden_dim)
        self.second = nn.Linear(hidden_dim, hidden_dim)
        self.to_score = nn.Linear(hidden_dim, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Float[Tensor, "N G"]) -> Float[Tensor, " N"]:
        hidden = self.dropout(torch.relu(self.first(vectors)))
        hidden = self.dropout(torch.relu(self.second(hidden)))
        return self.to_score(hidden).squeeze(1)


def prune_spans(
    scores: Float[Tensor, " N"], starts: Int[Tensor, " N"], ends: Int[Tensor, " N"], *,
    num_kept: int,
) -> Int[Tensor, " P"]:  # fmt: skip
    """Return the indices of up to ``num_kept`` best spans, ordered by start and then by end.

    Spans are taken from the best score down, skipping those that cross a span already taken.
    """
    order = scores.detach().argsort(descending=True, stable=True).tolist()
    spans = _pairs(starts, ends)
    furthest_end: dict[int, int] = {}  # by start of the spans taken
    nearest_start: dict[int, int] = {}  # by end of the spans taken
    taken: list[int] = []
    # A taken span crosses [start, end) if one end is inside and the other one outside. For each
    # border the furthest partner is enough, so a candidate costs its width, not all spans taken.
    for index in order:
        if len(taken) >= num_kept:
            break
        start, end = spans[index]
        inside = range(start + 1, end)
        crosses_right = any(furthest_end.get(t, end) > end for t in inside)
        if not crosses_right and all(nearest_start.get(t, start) >= start for t in inside):
            taken.append(index)
            furthest_end[start] = max(end, furthest_end.get(start, 0))
            if start < nearest_start.get(end, end):
                nearest_start[end] = start
    taken.sort(key=lambda index: spans[index])
    return torch.tensor(taken, dtype=torch.long, device=starts.device)


@dataclass(frozen=True)
class AntecedentScores:
    """Scores of consecutive spans with the spans before them."""

    first_span: int  # row r is span ``first_span + r``
    first_antecedent: int  # column c is span ``first_antecedent + c``
    scores: Float[Tensor, "R C"]
    """-inf where the column is not one of the K spans before the row."""

    def loss(self, clusters: Int[Tensor, " P"]) -> Float[Tensor, " R"]:
        """Return the negative log-probability of all correct antecedents of each row.

        ``clusters`` numbers the clusters of all kept spans, 0 for none. If no antecedent is in the
        span's own cluster, having none is correct. Source: Lee et al. 2017, section 5.
        """
        num_rows, num_columns = self.scores.shape
        mine = clusters[self.first_span :][:num_rows, None]
        theirs = clusters[self.first_antecedent :][:num_columns]
        is_correct = (mine == theirs) & (mine > 0) & self.scores.isfinite()
        has_none = ~is_correct.any(dim=1, keepdim=True)
        scores = functional.pad(self.scores, (1, 0))  # having none scores 0
        correct = scores.masked_fill(~torch.cat((has_none, is_correct), dim=1), -torch.inf)
        return scores.logsumexp(dim=1) - correct.logsumexp(dim=1)

    def best(self) -> Int[Tensor, " R"]:
        """Return the best antecedent of each row; -1 if no score is above 0."""
        best = self.scores.max(dim=1)
        return torch.where(best.values > 0, best.indices + self.first_antecedent, -1)


class AntecedentScore(nn.Module):
    """How likely span j is the antecedent of span i: two hidden layers over the pair.

    They read ``[g_i; g_j; g_i ⊙ g_j; distance; speaker; genre]``: bucketed distance in kept spans;
    whether the speaker is the same; the kind of text, 1 to ``num_genres``. Unknown features are
    zero vectors. Dropout of features and hidden units is the same for all pairs of a document.

    Source: Lee et al. 2017, sections 3 and 4.
    """

    def __init__(
        self, span_dim: int, hidden_dim: int, *, max_antecedents: int, feature_dim: int = 20,
        num_genres: int = 0, dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_antecedents = max_antecedents
        self.distance = nn.Embedding(len(_BUCKET_STARTS) + 1, feature_dim)
        self.speaker = nn.Embedding(3, feature_dim, padding_idx=0)  # unknown, other, same
        self.genre = nn.Embedding(num_genres + 1, feature_dim, padding_idx=0)
        self.first = nn.Linear(3 * span_dim + 3 * feature_dim, hidden_dim)
        self.second = nn.Linear(hidden_dim, hidden_dim)
        self.to_score = nn.Linear(hidden_dim, 1)
        self.dropout = nn.Dropout(dropout)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_weights((self.first, self.second, self.to_score), generator)
        # Having no antecedent is at first as likely as the K antecedents together.
        nn.init.constant_(self.to_score.bias, -math.log(self.max_antecedents))
        for feature in (self.distance, self.speaker, self.genre):
            nn.init.xavier_uniform_(feature.weight, generator=generator)
        with torch.no_grad():
            self.speaker.weight[0] = 0
            self.genre.weight[0] = 0

    def forward(
        self, vectors: Float[Tensor, "P G"], mentions: Float[Tensor, " P"],
        speakers: Int[Tensor, " P"], genre: int, *, together: int = ROWS_TOGETHER,
    ) -> Iterator[AntecedentScores]:  # fmt: skip
        """Yield the scores of all spans with their antecedents, ``together`` spans at a time.

        A score is the sum for the pair and both mentions. ``speakers`` are numbers, 0 unknown, like
        the genre.
        """
        num_spans, span_dim, most = *vectors.shape, self.max_antecedents
        parts = [span_dim] * 3 + [self.distance.embedding_dim] * 3
        this, other, product, distance, speaker, text = self.first.weight.split(parts, dim=1)
        numbers = torch.arange(together + most, device=vectors.device)
        # Every block has the same distances, as its columns start K before its first row.
        offsets = numbers[:together, None] + most - numbers  # (R, R + K)
        is_antecedent = (offsets > 0) & (offsets <= most)
        # The first layer is linear: its parts are computed once per span, not once per pair.
        of_text = self.dropout(self.genre(numbers.new_tensor(genre))) @ text.T + self.first.bias
        of_distance = self.dropout(self.distance.weight) @ distance.T
        # Dropping a hidden unit for all pairs means dropping the weights that read it.
        read = self.dropout(vectors.new_ones(2, self.first.out_features))
        of_this, of_other = vectors @ this.T + of_text, vectors @ other.T  # (P, H)
        of_distance = functional.embedding(distance_buckets(offsets.clamp(min=0)), of_distance)
        of_speaker = self.dropout(self.speaker(numbers.new_tensor([0, 1, 2]))) @ speaker.T
        second, to_score = self.second.weight * read[0], self.to_score.weight * read[1]
        for start in range(0, num_spans, together):
            end, first = min(start + together, num_spans), max(0, start - most)
            rows, columns = slice(start, end), slice(first, end)
            at = most - (start - first)  # first column among all offsets
            near = (slice(0, end - start), slice(at, at + end - first))
            # Weights times g_i, (R, H, G), are fewer numbers than the products of pairs, (R, C, G).
            weights = vectors[rows, None] * product
            hidden = (weights @ vectors[columns].T).transpose(1, 2)  # (R, C, H)
            hidden += of_distance[near]
            hidden += of_this[rows, None]
            hidden += of_other[columns]
            if speakers.any():
                these, those = speakers[rows, None], speakers[columns]
                # 0 where a speaker is unknown, 1 for different speakers, 2 for the same
                same = (these > 0) * (those > 0) * (1 + (these == those).long())
                hidden += functional.embedding(same, of_speaker)
            hidden = functional.linear(hidden.relu_(), second, self.second.bias).relu_()
            scores = functional.linear(hidden, to_score, self.to_score.bias).squeeze(2)
            scores = scores + mentions[rows, None] + mentions[columns]
            scores = scores.masked_fill(~is_antecedent[near], -torch.inf)
            yield AntecedentScores(start, first, scores)


class CoreferenceModel(TaskModel):
    """Documents → clusters of mentions; the labels are genres.

    Spans are chosen without gradient; only the chosen ones are trained.
    Source: Lee et al. 2017; Peters et al. 2018, appendix A.6.
    """

    drawn = ("inputs", "encoder", "spans", "mention_score", "antecedent_score")

    def build(self, hidden_dims: Widths, dropout: float) -> None:
        inputs = self.inputs
        self.encoder = SentenceEncoder(inputs.output_dim, hidden_dims)
        self.dropout = VariationalDropout(dropout)
        self.states_dim = self.encoder.output_dim + inputs.output_mix_dim
        self.spans = SpanRepresentation(
            self.states_dim, inputs.output_dim, max_width=MAX_SPAN_WORDS, width_dim=FEATURE_DIM
        )
        span_dim, scorer_dim = self.spans.output_dim, max(1, round(SCORER_SHARE * hidden_dims[-1]))
        self.mention_score = MentionScore(span_dim, scorer_dim, dropout=dropout)
        self.antecedent_score = AntecedentScore(
            span_dim, scorer_dim, feature_dim=FEATURE_DIM, num_genres=len(self.labels),
            max_antecedents=MAX_ANTECEDENTS, dropout=dropout,
        )  # fmt: skip

    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        """Return the mean over kept spans, then over documents, plus the mixtures' penalty."""
        losses = []
        for document, spans, blocks in self._scored(batches, examples):
            numbers = _numbers(spans, document.clusters)
            clusters = torch.tensor(numbers, device=self.device)
            losses.append(torch.cat([block.loss(clusters) for block in blocks]).mean())
        return torch.stack(losses).mean() + self.inputs.penalty()

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[Answer]:
        """Return the clusters of each document: two or more mentions each, in text order."""
        return [
            (_join(spans, [link for block in blocks for link in block.best().tolist()]), no_probs)
            for _, spans, blocks in self._scored(batches, examples)
        ]

    def _scored(
        self, batches: Sequence[TokenBatch], examples: Sequence[CorefDocument]
    ) -> Iterator[tuple[CorefDocument, list[Mention], Iterator[AntecedentScores]]]:
        """Yield each document with its kept spans in text order, and their antecedents' scores."""
        for document, states, embeddings in self._read(batches, examples):
            starts, ends = self._choose(document, states, embeddings)
            vectors = self.spans(states, embeddings, starts, ends)
            mentions = self.mention_score(vectors)
            speakers = _speakers(document, starts.device)[starts]
            genre = self._ids.get(document.genre or "", -1) + 1  # 0: unknown
            blocks = self.antecedent_score(vectors, mentions, speakers, genre)
            yield document, _pairs(starts, ends), blocks

    def _read(
        self, batches: Sequence[TokenBatch], examples: Sequence[CorefDocument]
    ) -> Iterator[tuple[CorefDocument, Tensor, Tensor]]:
        """Yield each document with the states and embeddings of its words: (W, X), (W, E)."""
        states = [torch.zeros(0, self.states_dim, device=self.device)]  # there may be no batch
        embeddings = [torch.zeros(0, self.inputs.output_dim, device=self.device)]
        inputs, width = self.inputs, 0
        width += 0 if inputs.static is None else inputs.static.dim
        width += 0 if inputs.characters is None else inputs.characters.config.num_filters
        for batch in batches:
            # ELMo has a dropout of its own.
            lexical, elmo = inputs(batch).tensor_split([width], dim=2)
            lexical = functional.dropout(lexical, LEXICAL_DROPOUT, self.training)
            x = torch.cat([lexical, elmo], dim=2)
            encoded = self.dropout(self.encoder(x, batch.mask))
            states.append(self.inputs.join_output(encoded, batch)[batch.mask])
            embeddings.append(x[batch.mask])
        sizes = [sum(map(len, document.sentences)) for document in examples]
        parts = torch.cat(states).split(sizes), torch.cat(embeddings).split(sizes)
        yield from zip(examples, *parts, strict=True)

    def _choose(
        self, document: CorefDocument, states: Tensor, embeddings: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Keep the likeliest mentions, none of which cross; in training also the gold ones."""
        device = states.device
        lengths = [len(words) for words in document.sentences]
        lengths = torch.tensor(lengths, dtype=torch.int64, device=device)
        starts, ends = enumerate_spans(lengths, max_width=MAX_SPAN_WORDS)
        # In parts, to bound memory. Dropout, in training, lets other spans be chosen now and then.
        with torch.no_grad():
            parts = zip(starts.split(SPANS_TOGETHER), ends.split(SPANS_TOGETHER), strict=True)
            scored = [self.mention_score(self.spans(states, embeddings, *part)) for part in parts]
            scores = torch.cat([states.new_zeros(0), *scored])
        num_kept = math.ceil(SPANS_PER_WORD * states.shape[0])
        gold = torch.zeros(0, dtype=torch.int64, device=device)
        # In training the gold mentions are always kept, unlike in Lee et al. 2017: on a hundred
        # documents, fresh scores keep so few of them that little is learned for many epochs.
        if self.training:
            numbers = _numbers(_pairs(starts, ends), document.clusters)
            gold = torch.tensor(numbers, device=device).nonzero()[:, 0]
            num_kept = min(num_kept, max(0, MAX_TRAINING_SPANS - len(gold)))
        kept = prune_spans(scores, starts, ends, num_kept=num_kept)
        # Candidates are numbered in text order, so sorted numbers are spans in text order.
        kept = torch.cat([kept, gold]).unique()
        return starts[kept], ends[kept]


def _pairs(starts: Tensor, ends: Tensor) -> list[Mention]:
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def _speakers(document: CorefDocument, device: torch.device) -> Tensor:
    """Return a number for the speaker of each word, 0 where there is none."""
    names = document.speakers or (None,) * len(document.tokens)
    known = dict.fromkeys(filter(None, names))
    numbers = {None: 0} | {name: number for number, name in enumerate(known, 1)}
    return torch.tensor([numbers[name] for name in names], dtype=torch.int64, device=device)


def _numbers(spans: Sequence[Mention], clusters: Sequence[Sequence[Mention]]) -> list[int]:
    """Return the number of each span's cluster, from 1; 0 for none."""
    number_of = {span: number for number, cluster in enumerate(clusters, 1) for span in cluster}
    return [number_of.get(span, 0) for span in spans]


def _join(spans: Sequence[Mention], links: Sequence[int]) -> Clusters:
    """Return the clusters of spans that refer to each other; link -1 is none."""
    cluster_of: dict[int, list[Mention]] = {}
    clusters: Clusters = []
    for index, (span, link) in enumerate(zip(spans, links, strict=True)):
        if link < 0:
            continue
        if link not in cluster_of:
            cluster_of[link] = [spans[link]]
            clusters.append(cluster_of[link])
        cluster_of[index] = cluster_of[link]
        cluster_of[index].append(span)
    return sorted(clusters)
