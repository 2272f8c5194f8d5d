"""The CRF that learns which tags follow which; `elmokit.tasks.tag_search` decodes."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.masking import lengths_of
from elmokit.shapes import Bool, Float, Int

FRESH_STD = 0.1
"""Standard deviation of fresh transition scores."""


class CRF(nn.Module):
    """Linear-chain conditional random field over tag sequences.

    The score of tags y_1 … y_n is ``sum_t logits[t, y_t] + sum_t transitions[y_t, y_t+1]``; its
    probability is ``exp(score)``, normalized over all sequences of that length. An empty sequence
    has probability 1.

    Training takes any tags; only the search is constrained.

    Source: Lafferty et al. 2001; Lample et al. 2016, section 2.2.
    """

    def __init__(self, num_tags: int) -> None:
        super().__init__()
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
