"""Probabilities of tags and spans under a model of whole sequences: forward and backward sums.

Like `elmokit.tasks.networks.crf.viterbi`, only allowed sequences count: their probabilities sum to
1. Computed in float64 on the CPU.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from elmokit.metrics.span_f1 import read_spans


class Marginals:
    """The distribution over the tag sequences of one sentence.

    Args:
        logits: Scores or log-probabilities.
        transitions: Score of tag *j* right after tag *i*; none: 0.
        allowed: Which tags may follow which, see `elmokit.tasks.networks.crf`.

    Source: Lafferty et al. 2001, section 3.
    """

    def __init__(
        self,
        logits: Float[Tensor, "T Y"],
        *,
        transitions: Float[Tensor, "Y Y"] | None = None,
        allowed: Bool[Tensor, "S S"],
    ) -> None:
        steps = logits.detach().to("cpu", torch.float64)
        forbidden = ~allowed.cpu()
        moves = torch.zeros(len(forbidden) - 2, len(forbidden) - 2, dtype=torch.float64)
        if transitions is not None:
            moves = transitions.detach().to(moves)
        self._steps, self._moves = steps, moves.masked_fill(forbidden[:-2, :-2], -torch.inf)
        before = torch.zeros_like(steps)  # log-sum of all beginnings that end in a tag
        after = torch.zeros_like(steps)  # of all ends that follow it
        for t in range(len(steps)):
            if t == 0:
                reached = torch.zeros(steps.shape[1]).masked_fill(forbidden[-2, :-2], -torch.inf)
            else:
                reached = torch.logsumexp(before[t - 1].unsqueeze(1) + self._moves, dim=0)
            before[t] = reached + steps[t]
        for t in reversed(range(len(steps))):
            if t == len(steps) - 1:
                after[t].masked_fill_(forbidden[:-2, -1], -torch.inf)
            else:
                after[t] = torch.logsumexp(self._moves + steps[t + 1] + after[t + 1], dim=1)
        self._before, self._after = before, after
        self._total = torch.logsumexp(before[-1] + after[-1], dim=0) if len(steps) else 0.0

    def of_part(self, start: int, tags: Sequence[int]) -> float:
        """Return the probability of these tags at the words from ``start`` on."""
        last = start + len(tags) - 1
        score = self._before[start, tags[0]] + self._after[last, tags[-1]]
        for t, (tag, following) in enumerate(pairwise(tags), start + 1):
            score = score + self._moves[tag, following] + self._steps[t, following]
        return float((score - self._total).exp())


def span_probs(marginals: Marginals, tags: Sequence[str], ids: dict[str, int]) -> list[float]:
    """Return the probability of each span of `read_spans`: of its type and both boundaries.

    ``ids`` are those of all tags. Where a span ends only because the next tag does not continue it
    (BIO), sequences that continue it are subtracted.
    """
    probs = []
    for kind, start, end in read_spans(tags):
        own = [ids[tag] for tag in tags[start:end]]
        prob = marginals.of_part(start, own)
        continues = ids.get(f"I-{kind}")
        if tags[end - 1][0] in "BI" and end < len(tags) and continues is not None:
            prob -= marginals.of_part(start, [*own, continues])
        probs.append(min(1.0, max(0.0, prob)))
    return probs
