"""The network and the softmax in PyTorch, for devices other than the CPU.

Arrays go in and come out, as with the kernels.

The height of every matrix product is a multiple of a block: for other heights PyTorch may use
kernels that add in another order, which grows to 1e-5 over a few hundred recurrent steps.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elmokit.bilm.bilm import BiLM
from elmokit.bilm.char_cnn import CharTokenEncoder
from elmokit.bilm.config import BiLMConfig, SoftmaxConfig
from elmokit.bilm.lstmp import LSTMP
from elmokit.bilm.softmax import build_softmax
from elmokit.inference.engine import Engine
from elmokit.inference.numpy_backend import ROW_BLOCK, BlockReader

TOKEN_BLOCK = 16
"""Block of words in the character CNN."""
MAX_GATE_VALUES = 2**22
"""Gate inputs held at a time: 16 MB as fp32."""
MAX_CHARACTERS_PER_CHUNK = 4096
"""Character positions in one call of the character CNN; bounds its memory."""


class ModuleEngine(Engine):
    """An engine of the modules of `elmokit.bilm`, in fp32 or bf16."""

    def __init__(
        self, config: BiLMConfig, arrays: Mapping[str, np.ndarray], *, use_bf16: bool, device: str
    ) -> None:
        self._device = torch.device(device)
        self._arithmetic: Callable[[], AbstractContextManager] = nullcontext
        if use_bf16:
            self._arithmetic = partial(torch.autocast, self._device.type, dtype=torch.bfloat16)
        model = BiLM(config, initialize=False)
        own = {name: _tensor(arrays[name]) for name in model.state_dict()}
        model.load_state_dict(own, assign=True)
        model.to(self._device, torch.float32)
        if use_bf16:
            for weight in model.parameters():
                if weight.dim() > 1:  # biases stay as they are
                    weight.data = weight.data.to(torch.bfloat16)
        modules: Mapping[str, Any] = dict(model.named_modules())
        super().__init__(config, lambda name: partial(_run_layer, self._arithmetic, modules[name]))
        self.device, self.precision = device, "bf16" if use_bf16 else "fp32"
        self.computed_by = f"PyTorch {torch.__version__} on {self._device.type}"
        self.max_positions = max(1, MAX_GATE_VALUES // (4 * config.lstm.cell_dim))
        self.reader = partial(_ModuleReader, load=partial(_load, self._device), store=_array)
        self._token_encoder = model.token_encoder

    @torch.inference_mode()
    def encode_tokens(self, ids: np.ndarray) -> np.ndarray:  # pyright: ignore
        """Run the token layer in chunks of words of similar length, to save memory and padding."""
        if ids.ndim == 1:
            return _array(self._token_encoder(_tensor(ids).to(self._device)))
        encoder = self._token_encoder
        assert isinstance(encoder, CharTokenEncoder)
        row_length = self.config.char_vocab.max_characters
        widest = max(width for width, _ in encoder.config.filters)
        real = (ids[:, :row_length] != encoder.padding_id).sum(axis=1)
        # all windows of padding give a filter the same answer, so one of them is enough
        columns = np.minimum(real + widest, row_length)
        order = np.argsort(columns, kind="stable")
        shape = len(ids), self.config.lstm.projection_dim
        vectors = torch.empty(shape, dtype=torch.float32, device=self._device)
        end = len(order)
        with self._arithmetic():
            while end > 0:  # the longest first: the group has their columns
                longest = int(columns[order[end - 1]])
                size = max(1, MAX_CHARACTERS_PER_CHUNK // longest // TOKEN_BLOCK) * TOKEN_BLOCK
                rows = order[max(0, end - size) : end]
                padded = np.resize(rows, -(-len(rows) // TOKEN_BLOCK) * TOKEN_BLOCK)
                char_ids = torch.from_numpy(ids[padded].astype(np.int64)).to(self._device)
                answers = encoder.responses(char_ids[:, :longest])
                pooled = torch.cat([answer.amax(dim=1) for answer in answers], dim=1)  # (U, F)
                encoded = encoder.finish(pooled, char_ids)[: len(rows)]
                vectors[torch.from_numpy(rows).to(self._device)] = encoded.float()
                end -= len(rows)
        return _array(vectors)


@torch.inference_mode()
def _load(device: torch.device, array: np.ndarray) -> Tensor:
    return _tensor(array).to(device)


class _ModuleReader(BlockReader):
    read = torch.inference_mode()(BlockReader.read)


def _run_layer(
    arithmetic: Callable[[], AbstractContextManager],
    layer: LSTMP,
    x: Tensor,
    num_rows: np.ndarray,
    hidden: Tensor,
    cell: Tensor,
) -> Tensor:
    """Run one layer over a chunk of packed inputs, updating hidden and cell in place.

    Rows that only fill a block read the gate inputs of the next step, or the padding after the
    last one; their results are discarded.
    """
    outputs = x.new_zeros(len(x), hidden.shape[1])
    start = 0
    with arithmetic():
        gates_in = functional.linear(x, layer.input_weight, layer.gate_bias()).float()
        for n in num_rows.tolist():
            height = -(-n // ROW_BLOCK) * ROW_BLOCK
            new_hidden, new_cell = layer.step(
                gates_in[start : start + height], hidden[:height], cell[:height]
            )
            outputs[start : start + n] = hidden[:n] = new_hidden[:n]
            cell[:n] = new_cell[:n]
            start += n
    return outputs


class ModuleSoftmax:
    """The output layer of a model: scores of words and losses of targets."""

    def __init__(
        self, config: SoftmaxConfig, arrays: Mapping[str, np.ndarray], dim: int, *, num_words: int,
        device: str,
    ) -> None:  # fmt: skip
        self._device = torch.device(device)
        self._softmax = build_softmax(config, num_words, dim)
        own = {name: _tensor(arrays[f"softmax.{name}"]) for name in self._softmax.state_dict()}
        self._softmax.load_state_dict(own)
        self._softmax.to(self._device)

    @torch.inference_mode()
    def nll(self, hidden: np.ndarray, word_ids: np.ndarray) -> np.ndarray:
        parts = (_tensor(part).to(self._device) for part in (hidden, word_ids))
        return _array(self._softmax.nll(*parts))

    @torch.inference_mode()
    def log_probs(self, hidden: np.ndarray) -> np.ndarray:
        return _array(self._softmax.scores(_tensor(hidden).to(self._device)).log_softmax(dim=1))


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.float().cpu().numpy()
