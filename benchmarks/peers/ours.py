"""Ours: `Embedder` and `pretrain` whole, as users call them.

`pretrain` waits for requests between two updates, in the callback that every caller of it has.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from protocol import EmbeddingProgram, open_channel, serve_embedding, versions

from elmokit import Embedder, WordVocab
from elmokit.training.pretraining.presets import pretrain_config
from elmokit.training.pretraining.run import RunOptions, TrainingEvent, pretrain
from elmokit.training.schedules import Limits

WARM_UP = 128
"""Sentences that make a new embedder do what it does on first use."""
ENDLESS = 10**11


class Elmokit(EmbeddingProgram):
    """One `Embedder.embed` a batch; with its word cache, empty at first, where that is allowed."""

    packages = ("elmokit", "torch", "numpy")
    embedder: Embedder | None

    def load(self, *, folder: str, threads: int, max_batch: int, settings: dict[str, Any]) -> None:
        self.arguments = {"num_threads": threads, **settings}
        self.model = Path(folder, "model")
        self.caches = False
        self.embedder = Embedder.load(self.model, word_cache=False, **self.arguments)

    def begin_run(self, first_batch: list[list[str]]) -> None:
        if not self.keep_words and not self.caches:
            return
        self.embedder = None  # before the next one takes its memory
        self.caches = self.keep_words
        self.embedder = Embedder.load(self.model, word_cache=self.caches, **self.arguments)
        self.embedder.embed([["a"] * len(words) for words in first_batch[:WARM_UP]])

    def embed(self, sentences: list[list[str]]) -> list[np.ndarray]:
        assert self.embedder is not None
        return self.embedder.embed(sentences)


def train() -> None:
    """Train until nobody asks any more."""
    requests, answer = open_channel()
    request = next(requests)
    torch.set_num_threads(request["threads"])
    folder = Path(request["folder"])
    remaining, started = 0, 0.0

    def on_event(event: TrainingEvent) -> None:
        nonlocal remaining, started
        if event.report.progress.step == 1:
            answer({"loss": event.report.loss, "versions": versions(["elmokit", "torch"])})
        else:
            remaining -= 1
            if remaining > 0:
                return
            answer({"seconds": time.perf_counter() - started})
        following = next(requests, None)
        if following is None:
            raise SystemExit
        remaining, started = following["steps"], time.perf_counter()

    settings = {"precision": request["precision"], "checkpoint_steps": ENDLESS}
    overrides = [f"train.{name}={value}" for name, value in settings.items()]
    config = pretrain_config(request["preset"], overrides=[*request["overrides"], *overrides])
    options = RunOptions(
        limits=Limits(tokens=ENDLESS), vocab=WordVocab.read(folder / "vocab.txt"), device="cpu",
        on_event=on_event,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as run_dir:
        try:
            pretrain(config, [folder / "shards"], Path(run_dir, "run"), options)
        except Exception as error:
            answer({"error": f"{type(error).__name__}: {error}"})
            raise


if __name__ == "__main__":
    if sys.argv[1] == "embed":
        serve_embedding(Elmokit())
    else:
        train()
