"""Spans of a document as candidates: all of them, their vectors, the ones to keep.

Spans are ``[start, end)`` and count the W real tokens of a document from 0, across sentences.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.masking import masked_softmax

_BUCKET_STARTS = (1, 2, 3, 4, 5, 8, 16, 32, 64)
NUM_DISTANCE_BUCKETS = len(_BUCKET_STARTS) + 1
FRESH_STD = 0.02
"""Standard deviation of fresh width vectors."""


def enumerate_spans(
    sentence_lengths: Int[Tensor, " S"], *, max_width: int
) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
    """Return starts and ends of all spans within a sentence, ordered by start and then by end.

    ``max_width`` bounds the tokens of a span.
    """
    device = sentence_lengths.device
    borders = sentence_lengths.cumsum(dim=0)  # (S,): end of each sentence
    limits = borders.repeat_interleave(sentence_lengths)  # (W,): end of each token's sentence
    starts = torch.arange(limits.shape[0], device=device).unsqueeze(1).expand(-1, max_width)
    ends = starts + torch.arange(1, max_width + 1, device=device)  # (W, max_width)
    inside = ends <= limits.unsqueeze(1)
    return starts[inside], ends[inside]


def distance_buckets(distances: Int[Tensor, "*Shape"]) -> Int[Tensor, "*Shape"]:
    """Return the bucket of each distance, 0 to 9: 0, 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63, 64+.

    Source: Lee et al. 2017.
    """
    starts = torch.tensor(_BUCKET_STARTS, device=distances.device)
    return torch.bucketize(distances, starts, right=True)


class SpanRepresentation(nn.Module):
    """One vector per span: [first state; last state; attended head; width].

    The head is the mean of the embeddings inside the span, weighted by a softmax over one learned
    score of each token's state. No span is wider than ``max_width``.

    Args:
        state_dim: X, width of the encoder's states.
        embedding_dim: E, width of the token embeddings.
        max_width: Tokens of the longest span.
        width_dim: Size of the learned vector for a span's width.

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
        self,
        states: Float[Tensor, "W X"],
        embeddings: Float[Tensor, "W E"],
        starts: Int[Tensor, " N"],
        ends: Int[Tensor, " N"],
    ) -> Float[Tensor, "N G"]:
        if starts.shape[0] == 0:
            return states.new_zeros(0, self.output_dim)
        tokens = starts.unsqueeze(1) + torch.arange(self.max_width, device=starts.device)
        inside = tokens < ends.unsqueeze(1)  # (N, max_width)
        tokens = tokens.masked_fill(~inside, 0)
        weights = masked_softmax(self.head_score(states).squeeze(1)[tokens], inside)
        # sums weighted rows without copying the embedding for each span and token
        heads = functional.embedding_bag(
            tokens, embeddings, per_sample_weights=weights.to(embeddings.dtype), mode="sum"
        )
        widths = self.width_embedding(ends - starts)
        return torch.cat((states[starts], states[ends - 1], heads, widths), dim=1)


def prune_spans(
    scores: Float[Tensor, " N"],
    starts: Int[Tensor, " N"],
    ends: Int[Tensor, " N"],
    *,
    num_kept: int,
) -> Int[Tensor, " P"]:
    """Return the indices of up to ``num_kept`` best spans, ordered by start and then by end.

    Spans are taken from the best score down, skipping those that cross a span already taken; nested
    spans do not cross. Of equal scores the earlier in the list comes first.
    """
    order = scores.detach().argsort(descending=True, stable=True).tolist()
    start_list: list[int] = starts.tolist()
    end_list: list[int] = ends.tolist()
    furthest_end: dict[int, int] = {}  # by start of the spans taken
    nearest_start: dict[int, int] = {}  # by end of the spans taken
    kept: list[int] = []
    for index in order:
        if len(kept) >= num_kept:
            break
        start, end = start_list[index], end_list[index]
        crosses_right = any(furthest_end.get(t, end) > end for t in range(start + 1, end))
        crosses_left = any(nearest_start.get(t, start) < start for t in range(start + 1, end))
        if crosses_right or crosses_left:
            continue
        kept.append(index)
        if end > furthest_end.get(start, 0):
            furthest_end[start] = end
        if start < nearest_start.get(end, end):
            nearest_start[end] = start
    kept.sort(key=lambda index: (start_list[index], end_list[index]))
    return torch.tensor(kept, dtype=torch.long, device=starts.device)
