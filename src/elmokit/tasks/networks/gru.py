"""GRU on the CPU, all directions side by side, with its gradient worked out by hand.

Torch has no fast GRU for the CPU: it records a dozen small operations per step and direction. Here
a step takes six operations forward and three backward for both directions together. The numbers are
the same; an epoch of question answering takes 0.6 of the time (`docs/log.md`, 2026-11-22).
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.shapes import Float


def gru_steps(
    gates_in: Float[Tensor, "T D B G"], weight: Float[Tensor, "D G H"], bias: Float[Tensor, "D G"]
) -> Float[Tensor, "T D B H"]:
    """Run D GRUs of one width side by side, from zero states; first derivatives only.

    ``gates_in`` is the input part of the gates r, z, n, with its bias (G is 3H); ``weight`` and
    ``bias`` go from the state to the gates; for n the bias is inside the product with r.
    """
    return _GRUSteps.apply(gates_in, weight, bias)  # pyright: ignore[reportReturnType]


class _GRUSteps(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates_in: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        steps, directions, batch, width = gates_in.shape
        dim = width // 3
        hidden = gates_in.new_zeros(steps + 1, directions, batch, dim)
        gates, new = torch.empty_like(gates_in), torch.empty_like(hidden[1:])
        to_gates, bias = weight.transpose(1, 2).contiguous(), bias.unsqueeze(1)
        # Views of every step, made once: slicing inside the loop would cost as much as computing.
        parts = [gates[..., : 2 * dim], *gates.split(dim, dim=-1)]  # rz, r, z, inner part of n
        parts += [gates_in[..., : 2 * dim], gates_in[..., 2 * dim :], new]
        steps_of = zip(
            hidden[:-1].unbind(), hidden[1:].unbind(), gates.unbind(),
            *(part.unbind() for part in parts), strict=True,
        )  # fmt: skip
        for before, after, all_gates, rz, r, z, n_inner, rz_in, n_in, n in steps_of:
            torch.baddbmm(bias, before, to_gates, out=all_gates)
            rz.add_(rz_in).sigmoid_()
            torch.addcmul(n_in, r, n_inner, out=n).tanh_()
            torch.lerp(n, before, z, out=after)
        ctx.save_for_backward(weight, hidden, gates, new)
        return hidden[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        weight, hidden, gates, new = ctx.saved_tensors
        steps, directions, batch, dim = grad.shape
        reset, update, new_inner = gates.split(dim, dim=-1)
        before = hidden[:-1]
        # Derivatives of all steps at once; only the carry from step to step is left to the loop.
        by_new = (1 - update) * (1 - new * new)  # d state / d (sum inside tanh)
        of_reset = by_new * new_inner * reset * (1 - reset)
        of_update = (before - new) * update * (1 - update)
        factors = torch.stack([of_reset, of_update, by_new * reset], dim=3)  # (T, D, B, 3, H)
        to_inner = torch.empty_like(factors)
        to_state = torch.empty_like(grad)
        carry = None  # what the next step adds to the state's gradient
        steps_of = zip(
            grad.unbind(), to_state.unbind(), to_inner.unbind(), to_inner.flatten(3).unbind(),
            factors.unbind(), update.unbind(), strict=True,
        )  # fmt: skip
        for from_above, state, gates_of, flat, factor, z in reversed(list(steps_of)):
            if carry is None:
                state.copy_(from_above)
            else:
                torch.addcmul(from_above, *carry[:2], out=state).baddbmm_(carry[2], weight)
            torch.mul(state.unsqueeze(2), factor, out=gates_of)
            carry = state, z, flat
        to_gates_in = torch.cat([to_inner[..., :2, :].flatten(3), to_state * by_new], dim=-1)
        by_direction = to_inner.transpose(0, 1).reshape(directions, steps * batch, 3 * dim)
        states = before.transpose(0, 1).reshape(directions, steps * batch, dim)
        return to_gates_in, by_direction.transpose(1, 2) @ states, by_direction.sum(dim=1)
