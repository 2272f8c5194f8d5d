"""`CharTokenEncoder` for training, with convolutions and highways partly in C.

The maximum over positions keeps its argument, so the gradient reads one window per filter and word.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmokit.bilm.char_cnn import CharTokenEncoder, Highway
from elmokit.kernels.training import TrainingKernels, check_ids, fp32_empty, fp32_zeros, kernels_for


def encode_tokens(encoder: nn.Module, ids: Tensor) -> Tensor:
    """Return ``encoder(ids)``, through kernels if there are any for it.

    Shape: character ids (U, C), or word ids (U,) -> (U, D).
    """
    if not isinstance(encoder, CharTokenEncoder):
        return encoder(ids)
    available = kernels_for(encoder.char_embedding.weight)
    if available is None or not _fits(encoder, available[0], ids):
        return encoder(ids)
    kernels, dtype = available
    check_ids(ids, lowest=0, highest=len(encoder.char_embedding.weight) - 1, what="character ids")
    with torch.autocast("cpu", enabled=False):
        x = _Convolutions.apply(
            kernels,
            dtype,
            ids.long().contiguous(),
            encoder.config.activation == "tanh",
            encoder.char_embedding.weight,
            *(convolution.weight for convolution in encoder.convolutions),
            *(convolution.bias for convolution in encoder.convolutions),
        )
        for highway in encoder.highways:
            assert isinstance(highway, Highway)
            gate, transform = highway.carry, highway.transform
            x = _Highway.apply(kernels, x, gate.weight, gate.bias, transform.weight, transform.bias)
        if encoder.projection is None:
            return x.float()
        product = functional.linear(x, encoder.projection.weight.to(dtype))
        return product.float() + encoder.projection.bias


def _fits(encoder: CharTokenEncoder, kernels: TrainingKernels, ids: Tensor) -> bool:
    config, limits = encoder.config, kernels.constants
    return (
        ids.shape[1] == encoder.max_characters
        and config.embedding_dim % 2 == 0
        and encoder.max_characters <= limits["MAX_POSITIONS"]
        and max(width for width, _ in config.filters) * config.embedding_dim <= limits["MAX_WINDOW"]
        and (config.num_highway == 0 or config.num_filters % kernels.vector_length == 0)
    )


class _Convolutions(torch.autograd.Function):
    """Embedding, convolutions, maximum over positions, activation: ids (U, C) -> (U, F)."""

    @staticmethod
    def forward(
        ctx: Any,
        kernels: TrainingKernels,
        dtype: torch.dtype,
        ids: Tensor,
        is_tanh: bool,
        embedding: Tensor,
        *parameters: Tensor,
    ) -> Tensor:
        biases = parameters[len(parameters) // 2 :]
        # (count, width, E): the order of a window's values
        weights = [w.transpose(1, 2).contiguous() for w in parameters[: len(parameters) // 2]]
        packed = [kernels.pack(weight.flatten(1), dtype) for weight in weights]
        out = torch.empty(len(ids), sum(map(len, biases)), dtype=dtype, device="cpu")
        positions = torch.empty(out.shape, dtype=torch.uint8, device="cpu")
        arguments = [matrix.argument(kernels) for matrix in packed]
        convolutions = _convolutions(kernels, weights, m=arguments, bias=biases)
        kernels.call(
            "cnn_forward", **_common_fields(kernels, ids, embedding, convolutions, out, positions),
            is_tanh=is_tanh, typed_embedding=embedding.to(dtype),
        )  # fmt: skip
        ctx.kernels, ctx.is_tanh = kernels, is_tanh
        ctx.save_for_backward(ids, embedding, out, positions, *weights)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        ids, embedding, out, positions, *weights = ctx.saved_tensors
        grad_out = grad_out.contiguous()
        kernels = ctx.kernels
        grad_embedding = torch.empty_like(embedding)
        grad_weights = [torch.empty_like(weight) for weight in weights]
        grad_biases = [fp32_empty(len(weight)) for weight in weights]
        convolutions = _convolutions(
            kernels, weights, grad_weight=grad_weights, grad_bias=grad_biases
        )
        kernels.call(
            "cnn_backward", **_common_fields(kernels, ids, embedding, convolutions, out, positions),
            is_tanh=ctx.is_tanh, embedding=embedding, grad_out=grad_out,
            grad_answers=fp32_empty(*out.shape[::-1]),
            winners=torch.empty(out.shape[::-1], dtype=torch.uint8, device="cpu"),
            characters=fp32_empty(*ids.shape, embedding.shape[1]),
            tables=fp32_zeros(kernels.constants["TABLES"], *embedding.shape),
            grad_embedding=grad_embedding,
        )  # fmt: skip
        grad_embedding[0] = 0  # a padded token has no embedding
        grad_filters = (grad.transpose(1, 2).contiguous() for grad in grad_weights)
        return None, None, None, None, grad_embedding, *grad_filters, *grad_biases


def _convolutions(kernels: TrainingKernels, weights: Sequence[Tensor], **fields: Any) -> Any:
    """Return one structure for each (count, width, E) weight; the caller keeps them alive."""
    structures, first = [], 0
    for weight, *values in zip(weights, *fields.values(), strict=True):
        count, width, _ = weight.shape
        own = dict(zip(fields, values, strict=True), weight=weight)
        sizes = {"width": width, "count": count, "first": first}
        structures.append(kernels.structure("train_convolution", **own, **sizes))
        first += count
    return kernels.array(structures)


def _common_fields(
    kernels: TrainingKernels, ids: Tensor, embedding: Tensor, convolutions: Any, out: Tensor,
    positions: Tensor,
) -> dict[str, Any]:  # fmt: skip
    num_words, max_characters = ids.shape
    num_ids, embedding_dim = embedding.shape
    characters = torch.get_num_threads() * kernels.constants["WORDS_TOGETHER"] * max_characters
    return {
        "convolutions": convolutions, "num_convolutions": len(convolutions),
        "num_words": num_words, "max_characters": max_characters, "num_ids": num_ids,
        "embedding_dim": embedding_dim, "num_filters": out.shape[1],
        "type": kernels.types[out.dtype], "char_ids": ids, "out": out, "positions": positions,
        "buffers": fp32_empty(characters + kernels.constants["TILE_ROWS"], embedding_dim),
    }  # fmt: skip


class _Highway(torch.autograd.Function):
    """`Highway` in fp32 or bf16: (U, F) -> (U, F)."""

    @staticmethod
    def forward(ctx: Any, kernels: TrainingKernels, x: Tensor, *parameters: Tensor) -> Tensor:
        gate_weight, gate_bias, transform_weight, transform_bias = parameters
        gate_weight, transform_weight = gate_weight.to(x.dtype), transform_weight.to(x.dtype)
        gate, transform = x @ gate_weight.t(), x @ transform_weight.t()
        out = torch.empty_like(x)
        kernels.call(
            "highway_forward", type=kernels.types[x.dtype], num_rows=x.shape[0], dim=x.shape[1],
            x=x, gate=gate, transform=transform,
            gate_bias=gate_bias, transform_bias=transform_bias, out=out,
        )  # fmt: skip
        ctx.kernels = kernels
        ctx.save_for_backward(x, gate, transform, gate_weight, transform_weight)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, gate, transform, gate_weight, transform_weight = ctx.saved_tensors
        grad_out, kernels = grad_out.contiguous(), ctx.kernels
        grad_gate, grad_transform, grad_x = (torch.empty_like(x) for _ in range(3))
        kernels.call(
            "highway_backward", type=kernels.types[x.dtype], num_rows=x.shape[0], dim=x.shape[1],
            x=x, gate=gate, transform=transform,
            grad_out=grad_out, grad_gate=grad_gate, grad_transform=grad_transform, grad_x=grad_x,
        )  # fmt: skip
        grad_x.addmm_(grad_gate, gate_weight).addmm_(grad_transform, transform_weight)
        grad_weights = [(grad.t() @ x).float() for grad in (grad_gate, grad_transform)]
        grad_biases = [kernels.column_sums(grad) for grad in (grad_gate, grad_transform)]
        return None, grad_x, grad_weights[0], grad_biases[0], grad_weights[1], grad_biases[1]
