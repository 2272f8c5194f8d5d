"""Peer: a biLM as one writes it in PyTorch without further thought: `nn.LSTM(proj_size=…)`.

That LSTM knows no clipping: results differ from the original's as soon as a value is clipped. The
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

from elmokit import WordVocab
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


def encode(encoder: Any, char_ids: Tensor) -> Tensor:
    """Return the token layer (U, D) of words (U, C), with `nn.Conv1d` over whole rows."""
    x = encoder.char_embedding(char_ids).transpose(1, 2)
    filters = [convolution(x).amax(dim=2) for convolution in encoder.convolutions]
    return encoder.finish(torch.cat(filters, dim=1), char_ids)


def run_lstm(layer: LSTMP, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Read (B, T, D) with what `nn.LSTM` calls, and the weights of one of our layers."""
    weights = layer.weights()
    assert weights.projection is not None
    biases = [weights.bias, torch.zeros_like(weights.bias)]
    hidden, cell = (part.unsqueeze(0) for part in state)
    outputs, hidden, cell = torch.lstm(
        x, (hidden, cell), [weights.input, weights.recurrent, *biases, weights.projection],
        True, 1, 0.0, True, False, True,  # biases, layers, dropout, training, one way, batch first
    )  # fmt: skip
    return outputs, (hidden.squeeze(0), cell.squeeze(0))


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
        self.optimizer = self.config.optimizer.build(self.model)
        self.directions = (self.model.forward_layers, self.model.backward_layers)
        lstm, rows = self.model.config.lstm, train.batch_size
        zeros = torch.zeros(rows, lstm.projection_dim), torch.zeros(rows, lstm.cell_dim)
        self.states = [[zeros] * lstm.num_layers for _ in self.directions]
        self.step = 0

    def update(self) -> float:
        """Make an update and return its loss."""
        window, optimizer = self.windows[self.step % NUM_WINDOWS], self.config.optimizer
        inputs = map(torch.from_numpy, (window.forward_inputs, window.backward_inputs))
        targets = (window.forward_targets, window.backward_targets)
        char_ids = torch.from_numpy(window.char_ids.astype("int64"))
        words = encode(self.model.token_encoder, char_ids)
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        for direction, index in enumerate(inputs):
            top = self.read(direction, functional.embedding(index, words)).flatten(0, 1)
            seed = derived_seed(self.config.train.seed, self.step, direction, 1)
            generator = torch.Generator().manual_seed(seed)
            softmax: Any = self.model.softmax
            word_ids = torch.from_numpy(targets[direction]).flatten()
            losses.append(softmax.training_nll(top, word_ids, generator=generator).mean())
        loss = (losses[0] + losses[1]) / 2
        (loss * optimizer.loss_scale).backward()
        clip_norm = optimizer.clip_norm or float("inf")
        nn.utils.clip_grad_norm_(self.model.parameters(), clip_norm)
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def read(self, direction: int, x: Tensor) -> Tensor:
        """Read a window (B, T, D) in its order, and keep the states; return the top layer."""
        dropout, states = self.config.model.dropout, self.states[direction]
        for index, layer in enumerate(self.directions[direction]):
            layer_in = functional.dropout(x, dropout)
            out, (hidden, cell) = run_lstm(layer, layer_in, states[index])
            x = out if index == 0 else out + layer_in
            states[index] = (hidden.detach(), cell.detach())
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
