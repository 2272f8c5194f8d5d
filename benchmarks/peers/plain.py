"""Peer: a biLM as one writes it in PyTorch without further thought: `nn.LSTM(proj_size=…)`.

`nn.LSTM` knows no clipping: results differ from the original's as soon as a value is clipped. In
training it has the weights, windows, candidates and optimizer of ours; every gradient is dense, and
the CNN reads every token, or each distinct word of a batch once.
"""

import sys
import time
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from protocol import answer, read_request, time_embedding
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmokit import BiLM, WordVocab, read_bilm_tf
from elmokit.bilm.softmax import LogUniformSampler
from elmokit.corpus.preparation import PreparedText
from elmokit.corpus.shards import ShardSet
from elmokit.corpus.stream import WindowStream
from elmokit.training.loop import derived_seed
from elmokit.training.pretraining.presets import pretrain_config
from elmokit.training.pretraining.run import new_model

NUM_WINDOWS = 8
warnings.filterwarnings("ignore", message="LSTM with projections is not supported with oneDNN")


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
        self.forward_lstms = nn.ModuleList(map(_lstm, model.forward_layers))
        self.backward_lstms = nn.ModuleList(map(_lstm, model.backward_layers))

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
        forward = _run_stack(self.forward_lstms, tokens, lengths)
        backward = _run_stack(self.backward_lstms, _reversed(tokens, lengths), lengths)
        layers = [torch.cat((tokens, tokens), dim=2)]
        for ahead, back in zip(forward, backward, strict=True):
            layers.append(torch.cat((ahead, _reversed(back, lengths)), dim=2))
        return torch.stack(layers)


def _lstm(layer: Any) -> nn.LSTM:
    lstm = nn.LSTM(
        layer.input_weight.shape[1], layer.config.cell_dim,
        proj_size=layer.config.projection_dim, batch_first=True,
    )  # fmt: skip
    weights = {
        "weight_ih_l0": layer.input_weight,
        "weight_hh_l0": layer.recurrent_weight,
        "bias_ih_l0": layer.gate_bias(),
        "bias_hh_l0": torch.zeros_like(layer.bias),
        "weight_hr_l0": layer.projection_weight,
    }
    lstm.load_state_dict({name: weight.detach().clone() for name, weight in weights.items()})
    return lstm


def _run_stack(lstms: nn.ModuleList, x: Tensor, lengths: Tensor) -> list[Tensor]:
    outputs: list[Tensor] = []
    for lstm in lstms:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
        x = out + x if outputs else out
        outputs.append(x)
    return outputs


def _reversed(x: Tensor, lengths: Tensor) -> Tensor:
    """Turn every row round within its length."""
    steps = torch.arange(x.shape[1])
    index = (lengths[:, None] - 1 - steps).where(steps < lengths[:, None], steps)
    return x.gather(1, index[:, :, None].expand_as(x))


def embed() -> None:
    """Embed by one forward pass a call, padded to its longest sentence."""
    request = read_request()
    torch.set_num_threads(request["threads"])
    folder = Path(request["folder"])
    model = read_bilm_tf(folder / "options.json", folder / "weights.hdf5")
    stack = PlainStack(model).eval()

    @torch.inference_mode()
    def embed_call(sentences: list[list[str]]) -> list[np.ndarray]:
        char_ids = torch.from_numpy(model.char_vocab.encode(sentences))
        layers = stack.embed(char_ids).numpy()
        return [layers[:, row, 1 : len(words) + 1] for row, words in enumerate(sentences)]

    answer(("torch", "numpy"), **time_embedding(request["calls"], embed_call))


class PlainTraining:
    """Model, optimizer, and some windows that are made before the clock starts."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.config = pretrain_config(request["preset"], overrides=request["overrides"])
        self.distinct_words = request["distinct_words"]
        train, folder = self.config.train, Path(request["folder"])
        vocab = WordVocab.read(folder / "vocab.txt")
        text = PreparedText(ShardSet.open(folder / "shards"), vocab, None)
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
        self.directions = (self.stack.forward_lstms, self.stack.backward_lstms)
        self.states: list[list[Any]] = [[None] * len(lstms) for lstms in self.directions]
        self.step = 0

    def update(self) -> float:
        """Make an update and return its loss."""
        window, optimizer = self.windows[self.step % NUM_WINDOWS], self.config.optimizer
        char_ids = torch.from_numpy(window.char_ids.astype("int64"))
        slots = map(torch.from_numpy, (window.forward_inputs, window.backward_inputs))
        targets = (window.forward_targets, window.backward_targets)
        words = self.stack.encode_tokens(char_ids) if self.distinct_words else None
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        for direction, index in enumerate(slots):
            if words is None:
                tokens = self.stack.encode_tokens(char_ids[index.flatten()])
                tokens = tokens.unflatten(0, index.shape)
            else:
                tokens = functional.embedding(index, words)
            top = self.read(direction, tokens).flatten(0, 1)
            losses.append(self.nll(top, torch.from_numpy(targets[direction]).flatten(), direction))
        loss = (losses[0] + losses[1]) / 2
        (loss * optimizer.loss_scale).backward()
        nn.utils.clip_grad_norm_(
            self.all_parameters.parameters(), optimizer.clip_norm or float("inf")
        )
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
    {"embed": embed, "train": train}[sys.argv[1]]()
