"""Scores of whole tag sequences: the linear-chain CRF and the Viterbi search.

``allowed``, (Y + 2, Y + 2) for Y tags, says which tags may follow which: entry (i, j) is True if j
may come right after i. Row Y is the start of a sequence, column Y + 1 its end; row Y + 1 and column
Y are ignored. `viterbi` needs no learned weights, so models without a CRF use it too.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.masking import lengths_of

FRESH_STD = 0.1
"""Standard deviation of fresh transition scores."""


class CRF(nn.Module):
    """Linear-chain conditional random field over tag sequences.

    The score of tags y_1 … y_n is ``sum_t logits[t, y_t] + sum_t transitions[y_t, y_t+1]``; its
    probability is ``exp(score)``, normalized over all sequences of that length. An empty sequence
    has probability 1.

    Args:
        num_tags: Y.
        allowed: Which tags may follow which (see the module); none: all. It constrains decoding
            only, and is not saved.

    Source: Lafferty et al. 2001; Lample et al. 2016, section 2.2.
    """

    allowed: Tensor | None

    def __init__(self, num_tags: int, *, allowed: Bool[Tensor, "S S"] | None = None) -> None:
        super().__init__()
        if num_tags < 1:
            raise ValueError(f"`num_tags` must be at least 1, got {num_tags}.")
        if allowed is not None:
            _check_allowed(allowed, num_tags)
        self.num_tags = num_tags
        self.register_buffer("allowed", allowed, persistent=False)
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh scores: N(0, 0.1²). Before that all are 0."""
        nn.init.normal_(self.transitions, std=FRESH_STD, generator=generator)

    def forward(
        self, logits: Float[Tensor, "B T Y"], tags: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, " B"]:
        """Return the log-probability of each row's tags, in nats; 0 for an empty row.

        Raises:
            ValueError: if a tag at a real position is outside 0 to Y - 1, or padding comes before
                real positions.
        """
        self._check_width(logits)
        lengths = lengths_of(mask)
        if ((tags < 0) | (tags >= self.num_tags))[mask].any():
            raise ValueError(
                f"`tags` must be 0 to {self.num_tags - 1} at real positions, got "
                f"{int(tags[mask].min())} to {int(tags[mask].max())}."
            )
        if logits.shape[1] == 0:
            return logits.new_zeros(logits.shape[0])
        logits = logits if logits.dtype == torch.float64 else logits.float()
        logits, tags = logits.masked_fill(~mask.unsqueeze(2), 0), tags.masked_fill(~mask, 0)
        log_odds = _log_odds(logits, tags, mask, self.transitions.to(logits.dtype))
        return -log_odds.masked_fill(lengths == 0, 0)

    def decode(
        self, logits: Float[Tensor, "B T Y"], mask: Bool[Tensor, "B T"]
    ) -> tuple[Int[Tensor, "B T"], Float[Tensor, " B"]]:
        """Return the best allowed sequence of each row and its score, as `viterbi` does."""
        self._check_width(logits)
        return viterbi(logits, mask, transitions=self.transitions, allowed=self.allowed)

    def _check_width(self, logits: Tensor) -> None:
        if logits.shape[2] != self.num_tags:
            raise ValueError(
                f"`logits` must have one score for each of {self.num_tags} tags, got "
                f"{logits.shape[2]}."
            )


def viterbi(
    logits: Float[Tensor, "B T Y"],
    mask: Bool[Tensor, "B T"],
    *,
    transitions: Float[Tensor, "Y Y"] | None = None,
    allowed: Bool[Tensor, "S S"] | None = None,
) -> tuple[Int[Tensor, "B T"], Float[Tensor, " B"]]:
    """Find the allowed tag sequence with the highest score for every row.

    Computed in float64 on the CPU. Of equal scores, the tag with the lower id wins.

    Args:
        logits: Scores or log-probabilities.
        mask: True at real positions.
        transitions: Score of tag *j* right after tag *i*; none: 0.
        allowed: Which tags may follow which (see the module); none: all.

    Returns:
        The tags, 0 at padded positions, and their scores; an empty row scores 0.

    Raises:
        FloatingPointError: if a score is not finite.
        ValueError: if no sequence of a row's length is allowed, or padding comes before real
            positions.
    """
    num_rows, num_steps, num_tags = logits.shape
    lengths = lengths_of(mask).cpu()
    if allowed is None:
        allowed = torch.ones(num_tags + 2, num_tags + 2, dtype=torch.bool, device="cpu")
    _check_allowed(allowed, num_tags)
    if num_steps == 0 or num_rows == 0:
        return mask.long(), logits.new_zeros(num_rows)
    keep, forbidden = mask.detach().cpu(), ~allowed.cpu()
    steps = logits.detach().to("cpu", torch.float64).masked_fill(~keep.unsqueeze(2), 0)
    _check_finite(steps, "logits")
    moves = steps.new_zeros(num_tags, num_tags)
    if transitions is not None:
        moves = transitions.detach().to(steps)
        _check_finite(moves, "transitions")
    moves = moves.masked_fill(forbidden[:-2, :-2], -torch.inf)  # (Y, Y)
    best = steps[:, 0].masked_fill(forbidden[-2, :-2], -torch.inf)
    identity = torch.arange(num_tags, device=steps.device).expand(num_rows, num_tags)
    back = []  # T - 1 of (B, Y): the best tag before each tag
    for t in range(1, num_steps):
        reached, before = (best.unsqueeze(2) + moves).max(dim=1)
        here = keep[:, t].unsqueeze(1)
        best = torch.where(here, reached + steps[:, t], best)
        back.append(torch.where(here, before, identity))
    scores, tag = best.masked_fill(forbidden[:-2, -1], -torch.inf).max(dim=1)
    hopeless = (scores == -torch.inf) & (lengths > 0)
    if hopeless.any():
        row = int(hopeless.int().argmax())
        raise ValueError(
            f"`allowed` permits no sequence of {int(lengths[row])} tags (row {row}). A tag that "
            "may start, follow itself and end, such as O, makes every length possible."
        )
    path = [tag]
    for before in reversed(back):
        tag = before.gather(1, tag.unsqueeze(1)).squeeze(1)
        path.append(tag)
    tags = torch.stack(path[::-1], dim=1).masked_fill(~keep, 0)
    return tags.to(logits.device), scores.masked_fill(lengths == 0, 0).to(logits)


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


def _check_allowed(allowed: Tensor, num_tags: int) -> None:
    size = num_tags + 2
    if allowed.shape != (size, size):
        raise ValueError(
            f"`allowed` must have shape ({size}, {size}) for {num_tags} tags, start and end, got "
            f"{tuple(allowed.shape)}."
        )


def _check_finite(scores: Tensor, name: str) -> None:
    if not scores.isfinite().all():
        raise FloatingPointError(
            f"`{name}` must be finite, got NaN or infinity: the model has diverged, or its input "
            "holds such values."
        )
