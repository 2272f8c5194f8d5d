"""Peer: the plain `nn.LSTM(proj_size=…)` stack in PyTorch, without further thought."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from plain_stack import PlainStack
from protocol import EmbeddingProgram, serve_embedding

from elmokit import read_bilm_tf


class Plain(EmbeddingProgram):
    """One forward pass a batch, padded to its longest sentence."""

    packages = ("torch", "numpy")

    def load(self, *, folder: str, threads: int, max_batch: int, settings: dict[str, Any]) -> None:
        """Load the weights."""
        torch.set_num_threads(threads)
        model = read_bilm_tf(Path(folder, "options.json"), Path(folder, "weights.hdf5"))
        self.encode = model.char_vocab.encode
        self.stack = PlainStack(model).eval()

    @torch.inference_mode()
    def embed(self, sentences: list[list[str]]) -> list[np.ndarray]:
        """Embed one batch."""
        layers = self.stack.embed(torch.from_numpy(self.encode(sentences))).numpy()
        return [layers[:, row, 1 : len(words) + 1] for row, words in enumerate(sentences)]


if __name__ == "__main__":
    serve_embedding(Plain())
