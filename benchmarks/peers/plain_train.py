"""Peer: training the plain stack, with the CNN on every token or once a distinct word of a batch.

Same weights, windows, candidates and optimizer as ours; every parameter has a dense gradient.
"""

import time
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from plain_stack import PlainStack
from protocol import serve, versions
from torch import Tensor, nn
from torch.nn import functional

from elmokit import WordVocab
from elmokit.bilm.softmax import LogUniformSampler
from elmokit.corpus.preparation import PreparedText
from elmokit.corpus.shards import ShardSet
from elmokit.corpus.stream import WindowStream
from elmokit.corpus.windows import WindowBatch
from elmokit.training.loop import derived_seed
from elmokit.training.pretraining.presets import pretrain_config
from elmokit.training.pretraining.pretrain import new_model

NUM_WINDOWS = 8


class PlainTraining:
    """Windows, model and optimizer; the windows are made before the clock starts."""

    def load(
        self,
        folder: str,
        preset: str,
        overrides: list[str],
        threads: int,
        distinct_words: bool,
    ) -> dict[str, Any]:
        """Load the weights."""
        torch.set_num_threads(threads)
        self.config = pretrain_config(preset, overrides=overrides)
        self.distinct_words = distinct_words
        vocab = WordVocab.read(Path(folder, "vocab.txt"))
        text = PreparedText(ShardSet.open(Path(folder, "shards")), vocab, None)
        model = new_model(self.config, text)
        stream = WindowStream(
            text.shards,
            vocab,
            model.char_vocab,
            batch_size=self.config.train.batch_size,
            num_steps=self.config.train.unroll_steps,
            seed=self.config.train.seed,
        )
        self.windows = [batch for batch, _ in islice(stream, NUM_WINDOWS)]
        self.stack = PlainStack(model).train()
        softmax: Any = model.softmax
        self.softmax = nn.ParameterDict({"weight": softmax.weight, "bias": softmax.bias})
        self.sampler = LogUniformSampler(len(vocab))
        self.all_parameters = nn.ModuleList([self.stack, self.softmax])
        self.optimizer = self.config.optimizer.build(self.all_parameters)
        self.states = self.stack.zero_states(self.config.train.batch_size)
        self.step = 0
        return {"loss": self.update(), "versions": versions(["torch"])}

    def run(self, steps: int) -> dict[str, Any]:
        """Make some updates and return their seconds."""
        started = time.perf_counter()
        for _ in range(steps):
            self.update()
        return {"seconds": time.perf_counter() - started}

    def update(self) -> float:
        """Make one update and return its loss."""
        window = self.windows[self.step % NUM_WINDOWS]
        inputs = (window.forward_inputs, window.backward_inputs)
        targets = (window.forward_targets, window.backward_targets)
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        for direction, tokens in enumerate(self.tokens(window, inputs)):
            top, self.states[direction] = self.stack.window(
                direction, tokens, self.states[direction], self.config.model.dropout
            )
            losses.append(
                self.nll(
                    top.flatten(0, 1), torch.from_numpy(targets[direction]).flatten(), direction
                )
            )
        loss = (losses[0] + losses[1]) / 2
        (loss * self.config.optimizer.loss_scale).backward()
        nn.utils.clip_grad_norm_(
            self.all_parameters.parameters(), self.config.optimizer.clip_norm or float("inf")
        )
        self.optimizer.step()
        self.step += 1
        return float(loss)

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
    training = PlainTraining()
    serve({"load": training.load, "run": training.run})
