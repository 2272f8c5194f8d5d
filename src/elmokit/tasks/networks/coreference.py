"""The network of coreference: Lee et al. 2017 as Peters et al. 2018 use it.

A vector for each span of words → the spans most likely to be mentions → the earlier span that each
of them refers to.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.tasks.formats.conll import Clusters, CorefDocument, Mention
from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.networks.encoder import (
    SentenceEncoder,
    TaskModel,
    VariationalDropout,
    draw_weights,
)
from elmokit.tasks.networks.spans import (
    AntecedentScore,
    AntecedentScores,
    MentionScore,
    SpanRepresentation,
    enumerate_spans,
    prune_spans,
)
from elmokit.tasks.task import Labels, Widths

MAX_SPAN_WORDS = 10  # of the longest mention that can be found
SPANS_PER_WORD = 0.4  # kept spans per word of the document
MAX_TRAINING_SPANS = 800
"""Kept spans in one update, to bound memory; exceeded only by more gold mentions than that."""
MAX_ANTECEDENTS = 250  # kept spans before a span that may be its antecedent
SPANS_TOGETHER = 1 << 14  # spans scored at once as mentions, without gradient
SCORER_SHARE = 0.75
"""Width of the layers that score spans, as a share of the biLSTM's: 150 of 200 in the paper."""
FEATURE_DIM = 20  # width of the vectors for width, distance, speaker and genre
LEXICAL_DROPOUT = 0.5  # for static vectors and characters; ELMo's is a setting of the inputs


class _Candidates(NamedTuple):
    """The P kept spans of a document, in text order."""

    starts: Tensor
    ends: Tensor
    vectors: Tensor  # (P, G)
    mentions: Tensor  # (P,): scores as mentions

    @property
    def spans(self) -> list[Mention]:
        return _pairs(self.starts, self.ends)


class CoreferenceModel(TaskModel):
    """Documents → clusters of mentions; the labels are genres.

    Spans are chosen without gradient; only the chosen ones are trained.
    Source: Lee et al. 2017; Peters et al. 2018, appendix A.6.
    """

    def __init__(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: Widths, *, dropout: float
    ) -> None:
        super().__init__(inputs, labels)
        self.encoder = SentenceEncoder(inputs.output_dim, hidden_dims)
        self.dropout = VariationalDropout(dropout)
        self.states_dim = self.encoder.output_dim + inputs.output_mix_dim
        self.spans = SpanRepresentation(
            self.states_dim, inputs.output_dim, max_width=MAX_SPAN_WORDS, width_dim=FEATURE_DIM
        )
        span_dim, scorer_dim = self.spans.output_dim, max(1, round(SCORER_SHARE * hidden_dims[-1]))
        self.mention_score = MentionScore(span_dim, scorer_dim, dropout=dropout)
        self.antecedent_score = AntecedentScore(
            span_dim, scorer_dim, feature_dim=FEATURE_DIM, num_genres=len(labels),
            max_antecedents=MAX_ANTECEDENTS, dropout=dropout,
        )  # fmt: skip

    def reset_parameters(self, generator: torch.Generator) -> None:
        parts = (self.inputs, self.encoder, self.spans, self.mention_score, self.antecedent_score)
        draw_weights(parts, generator)

    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        """Return the mean over kept spans, then over documents, plus the mixtures' penalty."""
        losses = []
        for document, states, embeddings in self._read(batches, examples):
            candidates = self._choose(document, states, embeddings)
            numbers = _numbers(candidates.spans, document.clusters)
            clusters = torch.tensor(numbers, device=states.device)
            blocks = self._antecedents(document, candidates)
            losses.append(torch.cat([block.loss(clusters) for block in blocks]).mean())
        return torch.stack(losses).mean() + self.inputs.penalty()

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[Clusters]:
        """Return the clusters of each document: two or more mentions each, in text order."""
        answers = []
        for document, states, embeddings in self._read(batches, examples):
            candidates = self._choose(document, states, embeddings)
            blocks = self._antecedents(document, candidates)
            links = [link for block in blocks for link in block.best().tolist()]
            answers.append(_join(candidates.spans, links))
        return answers

    def _read(
        self, batches: Sequence[TokenBatch], examples: Sequence[CorefDocument]
    ) -> Iterator[tuple[CorefDocument, Tensor, Tensor]]:
        """Yield each document with the states and embeddings of its words: (W, X), (W, E)."""
        device = self.mention_score.to_score.weight.device  # documents may have no batch
        states = [torch.zeros(0, self.states_dim, device=device)]
        embeddings = [torch.zeros(0, self.inputs.output_dim, device=device)]
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

    def _choose(self, document: CorefDocument, states: Tensor, embeddings: Tensor) -> _Candidates:
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
        starts, ends = starts[kept], ends[kept]
        vectors = self.spans(states, embeddings, starts, ends)
        return _Candidates(starts, ends, vectors, self.mention_score(vectors))

    def _antecedents(
        self, document: CorefDocument, candidates: _Candidates
    ) -> Iterator[AntecedentScores]:
        speakers = _speakers(document, candidates.starts.device)[candidates.starts]
        genre = self._ids.get(document.genre or "", -1) + 1  # 0: unknown
        return self.antecedent_score(candidates.vectors, candidates.mentions, speakers, genre)


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
