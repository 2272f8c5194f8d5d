"""Peer: a biLM as one writes it in PyTorch without further thought: `nn.LSTM(proj_size=…)`.

`nn.LSTM` knows no clipping: results differ from the original's as soon as a value is clipped. In
training it has the weights, windows, candidates and optimizer of ours; every gradient is dense, and
the CNN reads every token, or each distinct word of a batch once.
"""

import sys
import time
import warnings
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from protocol import EmbeddingProgram, serve, serve_embedding, versions
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmokit import BiLM, WordVocab, read_bilm_tf
from elmokit.bilm.softmax import LogUniformSampler
from elmokit.corpus.packing import WindowBatch
from elmokit.corpus.preparation import PreparedText
from elmokit.corpus.shards import ShardSet
from elmokit.corpus.stream import WindowStream
from elmokit.training.loop import derived_seed
from elmokit.training.pretraining.presets import pretrain_config
from elmokit.training.pretraining.run import new_model

NUM_WINDOWS = 8
warnings.filterwarnings("ignore", message="LSTM with projections is not supported with oneDNN")

LayerState = tuple[Tensor, Tensor]


class PlainStack(nn.Module):
    """The weights of one of our models in PyTorch's own modules."""

    def __init__(self, model: BiLM) -> None:
        super().__init__()
        encoder: Any = model.token_encoder
        self.embedding = nn.Embedding.from_pretrained(
            encoder.char_embedding.weight.detach().clone(), freeze=False, padding_idx=0
        )
        self.convolutions = encoder.convolutions
        self.highways = encoder.highways
        self.projection = encoder.projection
        self.directions = nn.ModuleList(
            nn.ModuleList(_lstm(layer) for layer in layers)
            for layers in (model.forward_layers, model.backward_layers)
        )

    def encode_tokens(self, char_ids: Tensor) -> Tensor:
        """(N, C) -> (N, D): every token, over its whole row."""
        x = self.embedding(char_ids).transpose(1, 2)
        x = torch.cat([functional.relu(conv(x).amax(dim=2)) for conv in self.convolutions], dim=1)
        for highway in self.highways:
            gate = torch.sigmoid(highway.carry(x))
            x = gate * functional.relu(highway.transform(x)) + (1 - gate) * x
        return self.projection(x)

    def embed(self, char_ids: Tensor) -> Tensor:
        """(B, T, C), boundaries included -> all layers (L, B, T, 2D)."""
        lengths = (char_ids > 0).any(dim=2).sum(dim=1)
        tokens = self.encode_tokens(char_ids.flatten(0, 1)).unflatten(0, char_ids.shape[:2])
        forward = self._stack(0, tokens, lengths)
        backward = self._stack(1, _reversed(tokens, lengths), lengths)
        layers = [torch.cat((tokens, tokens), dim=2)]
        for ahead, back in zip(forward, backward, strict=True):
            layers.append(torch.cat((ahead, _reversed(back, lengths)), dim=2))
        return torch.stack(layers)

    def _stack(self, direction: int, x: Tensor, lengths: Tensor) -> list[Tensor]:
        outputs = []
        for index, lstm in enumerate(self.directions[direction]):  # pyright: ignore
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
            x = out if index == 0 else out + x
            outputs.append(x)
        return outputs

    def window(
        self, direction: int, x: Tensor, states: Sequence[LayerState], dropout: float
    ) -> tuple[Tensor, list[LayerState]]:
        """Read a training window (B, T, D) in its order; return the top and the new states."""
        new_states = []
        for index, (lstm, state) in enumerate(zip(self.directions[direction], states, strict=True)):  # pyright: ignore
            layer_in = functional.dropout(x, dropout)
            out, (hidden, cell) = lstm(layer_in, state)
            x = out if index == 0 else out + layer_in
            new_states.append((hidden.detach(), cell.detach()))
        return functional.dropout(x, dropout), new_states

    def zero_states(self, num_rows: int) -> list[list[LayerState]]:
        """Return the states before any text, for both directions."""

        def zeros(lstm: Any) -> LayerState:
            return tuple(torch.zeros(1, num_rows, n) for n in (lstm.proj_size, lstm.hidden_size))

        return [[zeros(lstm) for lstm in stack] for stack in self.directions]  # pyright: ignore


def _lstm(layer: Any) -> nn.LSTM:
    cell_dim, projection_dim = layer.config.cell_dim, layer.config.projection_dim
    lstm = nn.LSTM(
        layer.input_weight.shape[1], cell_dim, proj_size=projection_dim, batch_first=True
    )
    weights = {
        "weight_ih_l0": layer.input_weight,
        "weight_hh_l0": layer.recurrent_weight,
        "bias_ih_l0": layer.gate_bias(),
        "bias_hh_l0": torch.zeros_like(layer.bias),
        "weight_hr_l0": layer.projection_weight,
    }
    lstm.load_state_dict({name: weight.detach().clone() for name, weight in weights.items()})
    return lstm


def _reversed(x: Tensor, lengths: Tensor) -> Tensor:
    """Turn every row round within its length."""
    steps = torch.arange(x.shape[1])
    index = (lengths[:, None] - 1 - steps).where(steps < lengths[:, None], steps)
    return x.gather(1, index[:, :, None].expand_as(x))


class Plain(EmbeddingProgram):
    """One forward pass a batch, padded to its longest sentence."""

    packages = ("torch", "numpy")

    def load(self, *, folder: str, threads: int, max_batch: int, settings: dict[str, Any]) -> None:
        torch.set_num_threads(threads)
        model = read_bilm_tf(Path(folder, "options.json"), Path(folder, "weights.hdf5"))
        self.encode = model.char_vocab.encode
        self.stack = PlainStack(model).eval()

    @torch.inference_mode()
    def embed(self, sentences: list[list[str]]) -> list[np.ndarray]:
        layers = self.stack.embed(torch.from_numpy(self.encode(sentences))).numpy()
        return [layers[:, row, 1 : len(words) + 1] for row, words in enumerate(sentences)]


class PlainTraining:
    """Windows, model and optimizer; the windows are made before the clock starts."""

    def load(
        self, folder: str, preset: str, overrides: list[str], threads: int, distinct_words: bool
    ) -> dict[str, Any]:
        torch.set_num_threads(threads)
        self.config, self.distinct_words = (
            pretrain_config(preset, overrides=overrides),
            distinct_words,
        )
        train = self.config.train
        vocab = WordVocab.read(Path(folder, "vocab.txt"))
        text = PreparedText(ShardSet.open(Path(folder, "shards")), vocab, None)
        model = new_model(self.config, text)
        stream = WindowStream(
            text.shards, vocab, model.char_vocab,
            batch_size=train.batch_size, num_steps=train.unroll_steps, seed=train.seed,
        )  # fmt: skip
        self.windows = [batch for batch, _ in islice(stream, NUM_WINDOWS)]
        self.stack = PlainStack(model).train()
        softmax: Any = model.softmax
        self.softmax = nn.ParameterDict({"weight": softmax.weight, "bias": softmax.bias})
        self.sampler = LogUniformSampler(len(vocab))
        self.all_parameters = nn.ModuleList([self.stack, self.softmax])
        self.optimizer = self.config.optimizer.build(self.all_parameters)
        self.states = self.stack.zero_states(train.batch_size)
        self.step = 0
        return {"loss": self.update(), "versions": versions(["torch"])}

    def run(self, steps: int) -> dict[str, Any]:
        started = time.perf_counter()
        for _ in range(steps):
            self.update()
        return {"seconds": time.perf_counter() - started}

    def update(self) -> float:
        window, optimizer = self.windows[self.step % NUM_WINDOWS], self.config.optimizer
        inputs = (window.forward_inputs, window.backward_inputs)
        targets = (window.forward_targets, window.backward_targets)
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        for direction, tokens in enumerate(self.tokens(window, inputs)):
            top, self.states[direction] = self.stack.window(
                direction, tokens, self.states[direction], self.config.model.dropout
            )
            word_ids = torch.from_numpy(targets[direction]).flatten()
            losses.append(self.nll(top.flatten(0, 1), word_ids, direction))
        loss = (losses[0] + losses[1]) / 2
        (loss * optimizer.loss_scale).backward()
        nn.utils.clip_grad_norm_(
            self.all_parameters.parameters(), optimizer.clip_norm or float("inf")
        )
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def tokens(self, window: WindowBatch, inputs: tuple[Any, Any]) -> list[Tensor]:
        """Return the token vectors (B, T, D) that each direction reads."""
        char_ids = torch.from_numpy(window.char_ids.astype("int64"))
        slots = [torch.from_numpy(index) for index in inputs]
        if self.distinct_words:
            words = self.stack.encode_tokens(char_ids)
            return [functional.embedding(index, words) for index in slots]
        return [
            self.stack.encode_tokens(char_ids[index.flatten()]).unflatten(0, index.shape)
            for index in slots
        ]

    def nll(self, hidden: Tensor, word_ids: Tensor, direction: int) -> Tensor:
        """Return the mean sampled loss."""
        seed = derived_seed(self.config.train.seed, self.step, direction, 1)
        candidates = self.sampler.draw(
            self.config.softmax.num_samples, generator=torch.Generator().manual_seed(seed)
        )
        targets = word_ids - 1
        rows = torch.cat((targets, candidates.classes))
        weight = functional.embedding(rows, self.softmax["weight"])
        bias = self.softmax["bias"][rows]
        bias = bias - self.sampler.log_expected_count(rows, candidates.num_tries)
        count = len(targets)
        own = (hidden * weight[:count]).sum(dim=1) + bias[:count]
        sampled = functional.linear(hidden, weight[count:], bias[count:])
        sampled = sampled.masked_fill(targets[:, None] == candidates.classes, -torch.inf)
        logits = torch.cat((own[:, None], sampled), dim=1)
        return functional.cross_entropy(logits, torch.zeros_like(targets))


if __name__ == "__main__":
    if sys.argv[1] == "embed":
        serve_embedding(Plain())
    else:
        training = PlainTraining()
        serve({"load": training.load, "run": training.run})
