"""Scores of whole tag sequences: the linear-chain CRF and the Viterbi search.

Which tags may follow which comes in as a matrix ``allowed`` of shape (Y + 2, Y + 2), Y being the
number of tags: row *i*, column *j* tells whether *j* may stand right after *i*. Row Y is the start
of a sequence and column Y + 1 its end; row Y + 1 and column Y mean nothing.

`viterbi` needs no learned weights, so that a model without a CRF decodes with the same search.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from elmokit.bilm.masking import lengths_of

FORBIDDEN = -1e30
"""Score of a transition that training must not use: finite, so that no gradient is undefined, and
so low that the sum over sequences never feels it."""
FRESH_STD = 0.1
"""Standard deviation of fresh transition scores."""


class CRF(nn.Module):
    """Linear-chain conditional random field over tag sequences.

    The score of tags y_1 … y_n is ``start[y_1] + sum_t logits[t, y_t] + sum_t transitions[y_t,
    y_t+1] + end[y_n]``; its probability is ``exp(score)``, normalized over all sequences of that
    length. An empty sequence has probability 1.

    Args:
        num_tags: Y.
        boundary_scores: Whether start and end have learned scores.
        allowed: Which tags may follow which, (Y + 2, Y + 2) as the module says; none: all. Decoding
            never breaks it. It is no part of the saved state.
        constrain_training: Whether the normalization counts allowed sequences only.

    Source: Lafferty et al. 2001; Lample et al. 2016, section 2.2.

    Raises:
        ValueError: if ``allowed`` has another shape, or is missing where training needs it.
    """

    allowed: Tensor | None

    def __init__(
        self,
        num_tags: int,
        *,
        boundary_scores: bool = True,
        allowed: Bool[Tensor, "S S"] | None = None,
        constrain_training: bool = False,
    ) -> None:
        super().__init__()
        if num_tags < 1:
            raise ValueError(f"`num_tags` must be at least 1, got {num_tags}.")
        if constrain_training and allowed is None:
            raise ValueError(
                "constrain_training=True needs `allowed`: which tags may follow which."
            )
        if allowed is not None:
            _check_allowed(allowed, num_tags)
        self.num_tags = num_tags
        self.constrain_training = constrain_training
        self.register_buffer("allowed", allowed, persistent=False)
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags))
        self.start = nn.Parameter(torch.zeros(num_tags)) if boundary_scores else None
        self.end = nn.Parameter(torch.zeros(num_tags)) if boundary_scores else None

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh scores: N(0, 0.1²). Without it all are 0."""
        for scores in (self.transitions, self.start, self.end):
            if scores is not None:
                nn.init.normal_(scores, std=FRESH_STD, generator=generator)

    def forward(
        self,
        logits: Float[Tensor, "B T Y"],
        tags: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
    ) -> Float[Tensor, " B"]:
        """Return the log-probability of each row's tags, in nats; 0 for an empty row.

        Args:
            logits: One score a tag and position.
            tags: The gold tags, 0 to Y - 1; anything at padded positions.
            mask: True at real positions.

        Raises:
            ValueError: if a tag is no tag, the tags of a row break ``allowed`` in constrained
                training, or padding stands before real positions.
        """
        self._check_width(logits)
        lengths = lengths_of(mask)
        self._check_tags(tags, mask)
        if logits.shape[1] == 0:
            return logits.new_zeros(logits.shape[0])
        logits = logits if logits.dtype == torch.float64 else logits.float()
        log_odds = _log_odds(
            logits.masked_fill(~mask.unsqueeze(2), 0),
            tags.masked_fill(~mask, 0),
            mask,
            lengths,
            *self._training_scores(logits),
        )
        return -log_odds.masked_fill(lengths == 0, 0)

    def decode(
        self, logits: Float[Tensor, "B T Y"], mask: Bool[Tensor, "B T"]
    ) -> tuple[Int[Tensor, "B T"], Float[Tensor, " B"]]:
        """Return the best allowed sequence of each row and its score, as `viterbi` does."""
        self._check_width(logits)
        return viterbi(
            logits,
            mask,
            transitions=self.transitions,
            start=self.start,
            end=self.end,
            allowed=self.allowed,
        )

    def _training_scores(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return transitions (Y, Y), start (Y,) and end (Y,), forbidden ones far down."""
        zeros = logits.new_zeros(self.num_tags)
        transitions = self.transitions.to(logits.dtype)
        start = zeros if self.start is None else self.start.to(logits.dtype)
        end = zeros if self.end is None else self.end.to(logits.dtype)
        if not self.constrain_training:
            return transitions, start, end
        assert self.allowed is not None
        inner, first, last = _parts_of(self.allowed)
        return (
            transitions.masked_fill(~inner, FORBIDDEN),
            start.masked_fill(~first, FORBIDDEN),
            end.masked_fill(~last, FORBIDDEN),
        )

    def _check_width(self, logits: Tensor) -> None:
        if logits.shape[2] != self.num_tags:
            raise ValueError(
                f"`logits` must have one score for each of {self.num_tags} tags, got "
                f"{logits.shape[2]}."
            )

    def _check_tags(self, tags: Tensor, mask: Tensor) -> None:
        """Refuse gold tags that do not exist or have no probability."""
        if ((tags < 0) | (tags >= self.num_tags))[mask].any():
            raise ValueError(
                f"`tags` must be 0 to {self.num_tags - 1} at real positions, got "
                f"{int(tags[mask].min())} to {int(tags[mask].max())}."
            )
        if not self.constrain_training or not mask.any():
            return
        assert self.allowed is not None
        legal = is_allowed(tags, mask, self.allowed)
        if not legal.all():
            raise ValueError(
                f"The tags of row {int(legal.int().argmin())} break `allowed`, so training would "
                "push them to probability 0. Mend the data, or train with "
                "constrain_training=False."
            )


def viterbi(
    logits: Float[Tensor, "B T Y"],
    mask: Bool[Tensor, "B T"],
    *,
    transitions: Float[Tensor, "Y Y"] | None = None,
    start: Float[Tensor, " Y"] | None = None,
    end: Float[Tensor, " Y"] | None = None,
    allowed: Bool[Tensor, "S S"] | None = None,
) -> tuple[Int[Tensor, "B T"], Float[Tensor, " B"]]:
    """Find the tag sequence of highest score for every row.

    Computed in float64 on the CPU: many small steps, and no sum that overflows. Where
    scores are equal, the tag of the lower id wins.

    Args:
        logits: One score a tag and position; log-probabilities do as well.
        mask: True at real positions.
        transitions: Score of tag *j* right after tag *i*; none: 0.
        start: Score of the first tag; none: 0.
        end: Score of the last tag; none: 0.
        allowed: Which tags may follow which, (Y + 2, Y + 2) as the module says; none: all. What
            breaks it is never returned.

    Returns:
        The tags, 0 at padded positions, and their scores; an empty row scores 0.

    Raises:
        ValueError: if a score is not finite, no sequence of a row's length is allowed, or padding
            stands before real positions.
    """
    num_rows, num_steps, num_tags = logits.shape
    lengths = lengths_of(mask).cpu()
    if allowed is None:
        allowed = torch.ones(num_tags + 2, num_tags + 2, dtype=torch.bool, device="cpu")
    _check_allowed(allowed, num_tags)
    if num_steps == 0 or num_rows == 0:
        return mask.long(), logits.new_zeros(num_rows)
    keep = mask.detach().cpu()
    steps = _on_cpu(logits).masked_fill(~keep.unsqueeze(2), 0)
    _check_finite(steps, "logits")
    inner, first, last = _parts_of(allowed.cpu())
    nothing = steps.new_zeros(num_tags)
    moves = steps.new_zeros(num_tags, num_tags) if transitions is None else _on_cpu(transitions)
    moves = _forbid(moves, inner, "transitions")  # (Y, Y)
    best = steps[:, 0] + _forbid(nothing if start is None else _on_cpu(start), first, "start")
    identity = torch.arange(num_tags, device=steps.device).expand(num_rows, num_tags)
    back = []  # T - 1 of (B, Y): the best tag before each tag
    for t in range(1, num_steps):
        reached, before = (best.unsqueeze(2) + moves).max(dim=1)
        here = keep[:, t].unsqueeze(1)
        best = torch.where(here, reached + steps[:, t], best)
        back.append(torch.where(here, before, identity))
    best = best + _forbid(nothing if end is None else _on_cpu(end), last, "end")
    scores, tag = best.max(dim=1)
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


def is_allowed(
    tags: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], allowed: Bool[Tensor, "S S"]
) -> Bool[Tensor, " B"]:
    """Tell which rows keep to ``allowed``; an empty row does."""
    num_tags = allowed.shape[0] - 2
    lengths = lengths_of(mask)
    allowed = allowed.to(tags.device)
    begin = tags.new_full((tags.shape[0], 1), num_tags)
    path = torch.cat((begin, tags.masked_fill(~mask, 0), begin), dim=1)  # (B, T + 2)
    path = path.scatter(1, (lengths + 1).unsqueeze(1), num_tags + 1)
    counts = torch.arange(path.shape[1] - 1, device=tags.device) <= lengths.unsqueeze(1)
    legal = allowed[path[:, :-1], path[:, 1:]] | ~counts
    return legal.all(dim=1) | (lengths == 0)


def _log_odds(
    logits: Tensor,
    tags: Tensor,
    mask: Tensor,
    lengths: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
) -> Tensor:
    """Return log(sum of exp(score) over all sequences / exp(score of ``tags``)), (B,).

    The score of ``tags`` is taken off step by step. The running sums then stay small as long as
    ``tags`` are likely, and long sequences lose no digits.
    """
    gold = logits.gather(2, tags.unsqueeze(2))  # (B, T, 1)
    moves = transitions[tags[:, :-1], tags[:, 1:]]  # (B, T - 1)
    gold = gold + torch.cat((start[tags[:, :1]], moves), dim=1).unsqueeze(2)
    last = tags.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1))  # (B, 1)
    steps = (logits - gold).unbind(dim=1)  # T of (B, Y)
    keep = mask.unsqueeze(2).unbind(dim=1)  # T of (B, 1)
    total = start + steps[0]
    for step, here in zip(steps[1:], keep[1:], strict=True):
        moved = torch.logsumexp(total.unsqueeze(2) + transitions, dim=1) + step
        total = torch.where(here, moved, total)
    return torch.logsumexp(total + end - end[last], dim=1)


def _parts_of(allowed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return which tags may follow which (Y, Y), which may begin (Y,) and which may end (Y,)."""
    return allowed[:-2, :-2], allowed[-2, :-2], allowed[:-2, -1]


def _check_allowed(allowed: Tensor, num_tags: int) -> None:
    size = num_tags + 2
    if allowed.shape != (size, size):
        raise ValueError(
            f"`allowed` must have shape ({size}, {size}) for {num_tags} tags, start and end, got "
            f"{tuple(allowed.shape)}."
        )


def _on_cpu(scores: Tensor) -> Tensor:
    """Return scores in float64 on the CPU, without their graph."""
    return scores.detach().to("cpu", torch.float64)


def _check_finite(scores: Tensor, name: str) -> None:
    if not scores.isfinite().all():
        raise ValueError(
            f"`{name}` must be finite, got NaN or infinity: the model has diverged, or its input "
            "holds such values."
        )


def _forbid(scores: Tensor, allowed: Tensor, name: str) -> Tensor:
    """Check scores and put those that are not allowed out of reach."""
    _check_finite(scores, name)
    return scores.masked_fill(~allowed, -torch.inf)
