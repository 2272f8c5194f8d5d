"""Scores of whole tag sequences: which tags may follow which, the CRF, search and probabilities.

``allowed``, (Y + 2, Y + 2) for Y tags, says which tags may follow which: entry (i, j) is True if j
may come right after i. Row Y is the start of a sequence, column Y + 1 its end; row Y + 1 and column
Y are ignored. The search and the probabilities need no learned weights, so models without a CRF use
them, too; both are computed in float64 on the CPU.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.masking import lengths_of
from elmokit.metrics.span_f1 import TagScheme, read_spans

FRESH_STD = 0.1
"""Standard deviation of fresh transition scores."""
MAX_TAGS = 4096
"""Of a model: what may follow what is a matrix."""
_BEGIN, _END = ("begin", ""), ("end", "")
_MUST_GO_ON = {"iob2": (), "bioul": ("B", "I")}
"""Prefixes of a span that the next tag must continue."""
_CONTINUES = {"iob2": ("I",), "bioul": ("I", "L")}
"""Prefixes that continue the span before them, which begins with B or goes on with I."""


def allowed_transitions(tags: Sequence[str], scheme: TagScheme) -> Bool[Tensor, "S S"]:
    """Return which tags may follow which.

    ``tags`` are all tags of the scheme in the order of their ids. ``iob2`` (BIO): B-X begins a span
    of type X, I-X only follows B-X or I-X, O is outside. ``bioul`` (BILOU): spans of one word are
    U-X, longer ones B-X, any I-X, L-X, so B-X and I-X only precede I-X or L-X. Types may contain
    hyphens: ``B-C-ARG1`` is of type ``C-ARG1``.

    Tags that nothing can complete (B-X without I-X and L-X) are kept; no path ends in them.
    """
    if len(tags) > MAX_TAGS:
        raise ValueError(f"`tags` holds {len(tags):,} tags; at most {MAX_TAGS:,} are possible.")
    # "B-C-ARG1" -> ("B", "C-ARG1"); start and end are places of their own at the end.
    places = [*(tag.partition("-")[::2] for tag in tags), _BEGIN, _END]
    rows = [[_may_follow(before, after, scheme) for after in places] for before in places]
    return torch.tensor(rows, dtype=torch.bool, device="cpu")


def _may_follow(before: tuple[str, str], after: tuple[str, str], scheme: TagScheme) -> bool:
    if before == _END or after == _BEGIN:
        return False
    if after[0] in _CONTINUES[scheme]:
        return before[0] in ("B", "I") and before[1] == after[1]
    return before[0] not in _MUST_GO_ON[scheme]


class CRF(nn.Module):
    """Linear-chain conditional random field over tag sequences.

    The score of tags y_1 … y_n is ``sum_t logits[t, y_t] + sum_t transitions[y_t, y_t+1]``; its
    probability is ``exp(score)``, normalized over all sequences of that length. An empty sequence
    has probability 1.

    ``allowed`` constrains decoding only, and is not saved.

    Source: Lafferty et al. 2001; Lample et al. 2016, section 2.2.
    """

    allowed: Tensor

    def __init__(self, allowed: Bool[Tensor, "S S"]) -> None:
        super().__init__()
        self.register_buffer("allowed", allowed, persistent=False)
        num_tags = len(allowed) - 2
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh scores: N(0, 0.1²). Before that all are 0."""
        nn.init.normal_(self.transitions, std=FRESH_STD, generator=generator)

    def forward(
        self, logits: Float[Tensor, "B T Y"], tags: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, " B"]:
        """Return the log-probability of each row's tags, in nats; 0 for an empty row."""
        lengths = lengths_of(mask)
        if logits.shape[1] == 0:
            return logits.new_zeros(logits.shape[0])
        logits, tags = logits.masked_fill(~mask.unsqueeze(2), 0), tags.masked_fill(~mask, 0)
        log_odds = _log_odds(logits, tags, mask, self.transitions.to(logits.dtype))
        return -log_odds.masked_fill(lengths == 0, 0)


def _log_odds(logits: Tensor, tags: Tensor, mask: Tensor, transitions: Tensor) -> Tensor:
    """Return log(sum of exp(score) over all sequences / exp(score of ``tags``)), (B,).

    The score of ``tags`` is subtracted step by step: the running sums stay small as long as
    ``tags`` are likely, so long sequences lose no digits.
    """
    moves = transitions[tags[:, :-1], tags[:, 1:]]  # (B, T - 1)
    gold = logits.gather(2, tags.unsqueeze(2)) + functional.pad(moves, (1, 0)).unsqueeze(2)
    total, *steps = (logits - gold).unbind(dim=1)  # T of (B, Y)
    keep = mask.unsqueeze(2).unbind(dim=1)  # T of (B, 1)
    for step, here in zip(steps, keep[1:], strict=True):
        moved = torch.logsumexp(total.unsqueeze(2) + transitions, dim=1) + step
        total = torch.where(here, moved, total)
    return torch.logsumexp(total, dim=1)


def viterbi(
    logits: Float[Tensor, "B T Y"],
    mask: Bool[Tensor, "B T"],
    *,
    transitions: Float[Tensor, "Y Y"] | None = None,
    allowed: Bool[Tensor, "S S"],
) -> tuple[Int[Tensor, "B T"], Float[Tensor, " B"]]:
    """Find the allowed tag sequence with the highest score for every row.

    ``transitions`` are scores of tag *j* right after tag *i*; none: 0. Of equal scores, the tag
    with the lower id wins. Some sequence of every length must be allowed, such as one of O alone.
    Returns the tags, 0 at padded positions, and their scores; an empty row scores 0.
    """
    num_rows, num_steps, num_tags = logits.shape
    lengths = lengths_of(mask).cpu()
    if num_steps == 0 or num_rows == 0:
        return mask.long(), logits.new_zeros(num_rows)
    keep, forbidden = mask.detach().cpu(), ~allowed.cpu()
    steps = logits.detach().to("cpu", torch.float64).masked_fill(~keep.unsqueeze(2), 0)
    moves = _moves(transitions, allowed)
    if not (steps.isfinite().all() and (moves < torch.inf).all()):
        raise FloatingPointError(
            "`logits` and `transitions` must be finite, got NaN or infinity: the model has "
            "diverged, or its input holds such values."
        )
    best = steps[:, 0].masked_fill(forbidden[-2, :-2], -torch.inf)
    # At padded steps every tag is its own predecessor, so shorter rows keep their last tag.
    identity = torch.arange(num_tags, device=steps.device).expand(num_rows, num_tags)
    back = []  # T - 1 of (B, Y): the best tag before each tag
    for t in range(1, num_steps):
        reached, before = (best.unsqueeze(2) + moves).max(dim=1)
        here = keep[:, t].unsqueeze(1)
        best = torch.where(here, reached + steps[:, t], best)
        back.append(torch.where(here, before, identity))
    scores, tag = best.masked_fill(forbidden[:-2, -1], -torch.inf).max(dim=1)
    path = [tag]
    for before in reversed(back):
        tag = before.gather(1, tag.unsqueeze(1)).squeeze(1)
        path.append(tag)
    tags = torch.stack(path[::-1], dim=1).masked_fill(~keep, 0)
    return tags.to(logits.device), scores.masked_fill(lengths == 0, 0).to(logits)


def _moves(transitions: Tensor | None, allowed: Tensor) -> Tensor:
    """Return the scores of tags right after each other, -inf where that is not allowed: (Y, Y)."""
    moves = torch.zeros(len(allowed) - 2, len(allowed) - 2, dtype=torch.float64, device="cpu")
    if transitions is not None:
        moves = transitions.detach().to(moves)
    return moves.masked_fill(~allowed.cpu()[:-2, :-2], -torch.inf)


class Marginals:
    """The distribution over the allowed tag sequences of one sentence: forward and backward sums.

    Arguments as in `viterbi`.

    Source: Lafferty et al. 2001, section 3.
    """

    def __init__(
        self,
        logits: Float[Tensor, "T Y"],
        *,
        transitions: Float[Tensor, "Y Y"] | None = None,
        allowed: Bool[Tensor, "S S"],
    ) -> None:
        steps, forbidden = logits.detach().to("cpu", torch.float64), ~allowed.cpu()
        self._steps, self._moves = steps, _moves(transitions, allowed)
        before = torch.zeros_like(steps)  # log-sum of all beginnings that end in a tag
        after = torch.zeros_like(steps)  # of all ends that follow it
        reached = torch.zeros(steps.shape[1]).masked_fill(forbidden[-2, :-2], -torch.inf)
        for t in range(len(steps)):
            before[t] = reached + steps[t]
            reached = torch.logsumexp(before[t].unsqueeze(1) + self._moves, dim=0)
        following = torch.zeros(steps.shape[1]).masked_fill(forbidden[:-2, -1], -torch.inf)
        for t in reversed(range(len(steps))):
            after[t] = following
            following = torch.logsumexp(self._moves + steps[t] + after[t], dim=1)
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
        # A BIO span says nothing about its end: what goes on after it is another span.
        if tags[end - 1][0] in "BI" and end < len(tags) and continues is not None:
            prob -= marginals.of_part(start, [*own, continues])
        probs.append(min(1.0, max(0.0, prob)))
    return probs
