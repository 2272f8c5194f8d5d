"""Peer: a biLM as one writes it in PyTorch without further thought: `nn.LSTM(proj_size=…)`.

`nn.LSTM` knows no clipping: results differ from the original's as soon as a value is clipped. The
rest are our plain modules under autograd. The peer has the weights, windows, candidates and
optimizer of ours; every gradient is dense, and the CNN reads each distinct word of a batch once.
"""

import time
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from protocol import answer, read_request
from torch import Tensor, nn
from torch.nn import functional

from elmokit import BiLM, WordVocab
from elmokit.bilm.bilm import BiLMState
from elmokit.bilm.lstmp import LSTMP
from elmokit.corpus.preparation import PreparedText
from elmokit.corpus.shards import ShardSet
from elmokit.corpus.stream import WindowStream
from elmokit.training.loop import derived_seed
from elmokit.training.pretraining.presets import pretrain_config
from elmokit.training.pretraining.run import new_model

NUM_WINDOWS = 8
State = tuple[Tensor, Tensor]
warnings.filterwarnings("ignore", message="LSTM with projections is not supported with oneDNN")


class PlainEncoder(nn.Module):
    """The token layer with `nn.Conv1d`: every token, over its whole row."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, char_ids: Tensor) -> Tensor:
        """(N, C) -> (N, D)."""
        x = self.encoder.char_embedding(char_ids).transpose(1, 2)
        filters = [convolution(x).amax(dim=2) for convolution in self.encoder.convolutions]
        return self.encoder.finish(torch.cat(filters, dim=1), char_ids)


class PlainLSTM(nn.LSTM):
    """PyTorch's LSTM with the weights of one of our layers, and called like it."""

    def __init__(self, layer: LSTMP) -> None:
        config = layer.config
        super().__init__(
            layer.input_weight.shape[1], config.cell_dim,
            proj_size=config.projection_dim, batch_first=True,
        )  # fmt: skip
        weights = {
            "weight_ih_l0": layer.input_weight,
            "weight_hh_l0": layer.recurrent_weight,
            "bias_ih_l0": layer.gate_bias(),
            "bias_hh_l0": torch.zeros_like(layer.bias),
            "weight_hr_l0": layer.projection_weight,
        }
        self.load_state_dict({name: weight.detach() for name, weight in weights.items()})

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:  # pyright: ignore[reportIncompatibleMethodOverride]
        hidden, cell = (part.unsqueeze(0).contiguous() for part in state)
        outputs, (hidden, cell) = super().forward(x, (hidden, cell))
        return outputs, (hidden.squeeze(0), cell.squeeze(0))


def make_plain(model: BiLM) -> None:
    """Put PyTorch's modules in the places of ours."""
    model.token_encoder = PlainEncoder(model.token_encoder)
    model.forward_layers = nn.ModuleList(map(PlainLSTM, model.forward_layers))
    model.backward_layers = nn.ModuleList(map(PlainLSTM, model.backward_layers))


class PlainTraining:
    """Model, optimizer, and some windows that are made before the clock starts."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.config = pretrain_config(request["preset"], overrides=request["overrides"])
        train, folder = self.config.train, Path(request["folder"])
        vocab = WordVocab.read(folder / "vocab.txt")
        text = PreparedText(ShardSet.open(folder / "shards"), vocab, None)
        self.model = new_model(self.config, text).train()
        stream = WindowStream(
            text.shards, vocab, self.model.char_vocab,
            batch_size=train.batch_size, num_steps=train.unroll_steps, seed=train.seed,
        )  # fmt: skip
        self.windows = [batch for batch, _ in islice(stream, NUM_WINDOWS)]
        make_plain(self.model)
        self.optimizer = self.config.optimizer.build(self.model)
        self.directions = (self.model.forward_layers, self.model.backward_layers)
        zeros = BiLMState.zeros(self.model.config.lstm, train.batch_size)
        states = (zeros.direction("forward"), zeros.direction("backward"))
        self.states = [list(zip(*state, strict=True)) for state in states]
        self.step = 0

    def update(self) -> float:
        """Make an update and return its loss."""
        window, optimizer = self.windows[self.step % NUM_WINDOWS], self.config.optimizer
        char_ids = torch.from_numpy(window.char_ids.astype("int64"))
        inputs = map(torch.from_numpy, (window.forward_inputs, window.backward_inputs))
        targets = (window.forward_targets, window.backward_targets)
        encode: Any = self.model.token_encoder
        words = encode(char_ids)
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        for direction, index in enumerate(inputs):
            top = self.read(direction, functional.embedding(index, words)).flatten(0, 1)
            seed = derived_seed(self.config.train.seed, self.step, direction, 1)
            generator = torch.Generator().manual_seed(seed)
            softmax: Any = self.model.softmax
            word_ids = torch.from_numpy(targets[direction]).flatten()
            nats = softmax.training_nll(top, word_ids, generator=generator)
            losses.append(nats.mean())
        loss = (losses[0] + losses[1]) / 2
        (loss * optimizer.loss_scale).backward()
        clip_norm = optimizer.clip_norm or float("inf")
        nn.utils.clip_grad_norm_(self.model.parameters(), clip_norm)
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def read(self, direction: int, x: Tensor) -> Tensor:
        """Read a window (B, T, D) in its order, and keep the states; return the top layer."""
        dropout = self.config.model.dropout
        for index, lstm in enumerate(self.directions[direction]):
            layer_in = functional.dropout(x, dropout)
            out, (hidden, cell) = lstm(layer_in, self.states[direction][index])
            x = out if index == 0 else out + layer_in
            self.states[direction][index] = (hidden.detach(), cell.detach())
        return functional.dropout(x, dropout)


def train() -> None:
    """Make one update, whose loss is told, and time the following ones."""
    request = read_request()
    torch.set_num_threads(request["threads"])
    training = PlainTraining(request)
    loss = training.update()
    started = time.perf_counter()
    for _ in range(request["steps"]):
        training.update()
    answer(("torch",), loss=loss, seconds=time.perf_counter() - started)


if __name__ == "__main__":
    train()
