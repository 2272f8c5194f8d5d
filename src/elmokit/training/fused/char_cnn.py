"""`CharTokenEncoder` for training: the same numbers, convolutions and highways partly in C.

The maximum over positions remembers its winner, so that the gradient touches one window a filter
and word. Held equal to the plain module by tests.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmokit.bilm.char_cnn import CharTokenEncoder
from elmokit.bilm.highway import Highway
from elmokit.kernels.inference import TILE_ROWS
from elmokit.kernels.training import (
    TYPES,
    HighwayCall,
    TrainCharCNNCall,
    TrainConvolutionArgument,
    TrainingKernels,
    address,
    check_ids,
    kernels_for,
)

WORDS_TOGETHER, TABLES = 16, 16
"""As in ``cnn_train.h``."""
MAX_POSITIONS = 256
"""Positions are kept in one byte."""
MAX_WINDOW = 2048
"""Values of a window, as in ``cnn_train.h``."""


def encode_tokens(encoder: nn.Module, ids: Tensor) -> Tensor:
    """Do what ``encoder(ids)`` does; where there are no kernels for it, by calling it.

    Shape: character ids (U, C), or word ids (U,) -> (U, D).

    Raises:
        ValueError: if a character id has no embedding, where there are kernels.
    """
    found = None
    if isinstance(encoder, CharTokenEncoder):
        found = kernels_for(encoder.char_embedding.weight)
    if found is None or not _fits(encoder, found[0], ids):
        return encoder(ids)
    assert isinstance(encoder, CharTokenEncoder)
    kernels, dtype = found
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
            x = _Highway.apply(
                kernels,
                x,
                highway.carry.weight,
                highway.carry.bias,
                highway.transform.weight,
                highway.transform.bias,
            )
        if encoder.projection is None:
            return x.float()
        product = functional.linear(x, encoder.projection.weight.to(dtype))
        return product.float() + encoder.projection.bias


def _fits(encoder: nn.Module, kernels: TrainingKernels, ids: Tensor) -> bool:
    """Tell whether the kernels take the encoder's widths."""
    assert isinstance(encoder, CharTokenEncoder)
    config = encoder.config
    return (
        ids.shape[1] == encoder.max_characters
        and config.embedding_dim % 2 == 0
        and encoder.max_characters <= MAX_POSITIONS
        and max(width for width, _ in config.filters) * config.embedding_dim <= MAX_WINDOW
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
        # (count, width, E): in the order of a window's values
        weights = [w.transpose(1, 2).contiguous() for w in parameters[: len(parameters) // 2]]
        packed = [kernels.pack(weight.flatten(1), dtype) for weight in weights]
        num_filters = sum(map(len, biases))
        out = torch.empty(len(ids), num_filters, dtype=dtype)
        positions = torch.empty(len(ids), num_filters, dtype=torch.uint8)
        typed = embedding.to(dtype)
        buffers = _buffers(ids, embedding)
        structs, first = (TrainConvolutionArgument * len(biases))(), 0
        for struct, matrix, weight, bias in zip(structs, packed, weights, biases, strict=True):
            struct.m, struct.bias = matrix.argument(), address(bias)
            struct.count, struct.width, _ = weight.shape
            struct.first, struct.weight = first, address(weight)
            first += len(bias)
        call = TrainCharCNNCall(
            structs, len(structs), *ids.shape, embedding.shape[1], num_filters, len(embedding),
            int(is_tanh), TYPES[dtype], address(typed, dtype=dtype), address(embedding),
            address(ids, dtype=torch.int64), address(out, dtype=dtype),
            address(positions, dtype=torch.uint8), address(buffers),
        )  # fmt: skip
        kernels.call("cnn_forward", call)
        ctx.kernels, ctx.is_tanh = kernels, is_tanh
        ctx.save_for_backward(ids, embedding, out, positions, *weights)
        return out

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_out: Tensor
    ) -> tuple[Any, ...]:
        ids, embedding, out, positions, *weights = ctx.saved_tensors
        grad_out = grad_out.contiguous()
        grad_answers = torch.empty(out.shape[::-1])
        winners = torch.empty(out.shape[::-1], dtype=torch.uint8)
        characters = torch.empty(*ids.shape, embedding.shape[1])
        buffers = _buffers(ids, embedding)
        tables = torch.zeros(TABLES, *embedding.shape)
        grad_embedding = torch.empty_like(embedding)
        grad_weights = [torch.empty_like(weight) for weight in weights]
        grad_biases = [torch.empty(len(weight)) for weight in weights]
        structs, first = (TrainConvolutionArgument * len(weights))(), 0
        for struct, weight, grad_weight, grad_bias in zip(
            structs, weights, grad_weights, grad_biases, strict=True
        ):
            struct.weight, struct.first = address(weight), first
            struct.grad_weight, struct.grad_bias = address(grad_weight), address(grad_bias)
            struct.count, struct.width, _ = weight.shape
            first += len(weight)
        call = TrainCharCNNCall(
            structs, len(structs), *ids.shape, embedding.shape[1], out.shape[1], len(embedding),
            int(ctx.is_tanh), TYPES[out.dtype], None, address(embedding),
            address(ids, dtype=torch.int64), address(out, dtype=out.dtype),
            address(positions, dtype=torch.uint8), address(buffers),
            address(grad_out, dtype=out.dtype), address(grad_answers),
            address(winners, dtype=torch.uint8), address(characters), address(tables),
            address(grad_embedding),
        )  # fmt: skip
        ctx.kernels.call("cnn_backward", call)
        grad_embedding[0] = 0  # a padded token has no embedding
        return (
            None,
            None,
            None,
            None,
            grad_embedding,
            *(grad.transpose(1, 2).contiguous() for grad in grad_weights),
            *grad_biases,
        )


def _buffers(ids: Tensor, embedding: Tensor) -> Tensor:
    """Return room for the characters of a few words in each thread."""
    characters = torch.get_num_threads() * WORDS_TOGETHER * ids.shape[1] + TILE_ROWS
    return torch.empty(characters, embedding.shape[1])


class _Highway(torch.autograd.Function):
    """`Highway` on values of either type: (U, F) -> (U, F)."""

    @staticmethod
    def forward(
        ctx: Any,
        kernels: TrainingKernels,
        x: Tensor,
        gate_weight: Tensor,
        gate_bias: Tensor,
        transform_weight: Tensor,
        transform_bias: Tensor,
    ) -> Tensor:
        gate_weight, transform_weight = gate_weight.to(x.dtype), transform_weight.to(x.dtype)
        gate, transform = x @ gate_weight.t(), x @ transform_weight.t()
        out = torch.empty_like(x)
        call = HighwayCall(
            TYPES[x.dtype], *x.shape,
            *(address(values, dtype=x.dtype) for values in (x, gate, transform)),
            address(gate_bias), address(transform_bias), address(out, dtype=x.dtype),
        )  # fmt: skip
        kernels.call("highway_forward", call)
        ctx.kernels = kernels
        ctx.save_for_backward(x, gate, transform, gate_weight, transform_weight)
        return out

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_out: Tensor
    ) -> tuple[Any, ...]:
        x, gate, transform, gate_weight, transform_weight = ctx.saved_tensors
        grad_out = grad_out.contiguous()
        grad_gate, grad_transform, grad_x = (torch.empty_like(x) for _ in range(3))
        call = HighwayCall(
            TYPES[x.dtype], *x.shape,
            *(address(values, dtype=x.dtype) for values in (x, gate, transform)), None, None, None,
            *(
                address(values, dtype=x.dtype)
                for values in (grad_out, grad_gate, grad_transform, grad_x)
            ),
        )  # fmt: skip
        kernels = ctx.kernels
        kernels.call("highway_backward", call)
        grad_x.addmm_(grad_gate, gate_weight).addmm_(grad_transform, transform_weight)
        return (
            None,
            grad_x,
            (grad_gate.t() @ x).float(),
            kernels.column_sums(grad_gate),
            (grad_transform.t() @ x).float(),
            kernels.column_sums(grad_transform),
        )
