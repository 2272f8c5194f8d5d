"""Ours: `elmokit.Embedder`, as its users call it."""

from pathlib import Path
from typing import Any

import numpy as np
from protocol import EmbeddingProgram, serve_embedding

from elmokit import Embedder

WARM_UP = 128
"""Sentences that make a new embedder do what it does on first use."""


class Elmokit(EmbeddingProgram):
    """One `Embedder.embed` a batch; with its word cache, empty at first, where that is allowed."""

    packages = ("elmokit", "torch", "numpy")
    embedder: Embedder | None

    def load(self, *, folder: str, threads: int, max_batch: int, settings: dict[str, Any]) -> None:
        """Load the weights."""
        self.arguments = {"num_threads": threads, **settings}
        self.model = Path(folder, "model")
        self.caches = False
        self.embedder = Embedder.load(self.model, word_cache=False, **self.arguments)

    def begin_run(self, first_batch: list[list[str]]) -> None:
        """Forget earlier runs."""
        if not self.keep_words and not self.caches:
            return
        self.embedder = None  # before the next one takes its memory
        self.caches = self.keep_words
        self.embedder = Embedder.load(self.model, word_cache=self.caches, **self.arguments)
        self.embedder.embed([["a"] * len(words) for words in first_batch[:WARM_UP]])

    def embed(self, sentences: list[list[str]]) -> list[np.ndarray]:
        """Embed one batch."""
        assert self.embedder is not None
        return self.embedder.embed(sentences)


if __name__ == "__main__":
    serve_embedding(Elmokit())
