"""Peer: sentence-transformers with MiniLM's shape, what many would take today. For speed only.

Weights are random and the word pieces are learned from the text, since no download is needed so.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from protocol import EmbeddingProgram, serve_embedding
from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]
from sentence_transformers.models import Transformer  # pyright: ignore[reportMissingImports]
from tokenizers import BertWordPieceTokenizer  # pyright: ignore[reportMissingImports]
from transformers import (  # pyright: ignore[reportMissingImports]
    BertConfig,
    BertModel,
    BertTokenizerFast,
)

L6 = {
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
}
"""all-MiniLM-L6-v2."""


class MiniLM(EmbeddingProgram):
    """One `encode` a batch, a vector for every word piece."""

    packages = ("sentence-transformers", "transformers", "torch", "numpy")

    def load(self, *, folder: str, threads: int, max_batch: int, settings: dict[str, Any]) -> None:
        """Load the weights."""
        torch.set_num_threads(threads)

    def prepare(self, words: Sequence[str]) -> None:
        """Make ready for words that are known before."""
        with tempfile.TemporaryDirectory() as folder:
            pieces = BertWordPieceTokenizer(lowercase=True)
            pieces.train_from_iterator(words, vocab_size=L6["vocab_size"], show_progress=False)
            pieces.save_model(folder)
            BertTokenizerFast(vocab=str(Path(folder, "vocab.txt"))).save_pretrained(folder)
            torch.manual_seed(0)
            BertModel(BertConfig(**L6)).save_pretrained(folder)
            module = Transformer(folder, max_seq_length=256)
        self.model = SentenceTransformer(modules=[module], device="cpu")

    def embed(self, sentences: list[list[str]]) -> list[np.ndarray]:
        """Embed one batch."""
        lines = [" ".join(words) for words in sentences]
        found = self.model.encode(
            lines,
            batch_size=len(lines),
            output_value="token_embeddings",
            show_progress_bar=False,
        )
        return [vectors.numpy() for vectors in found]


if __name__ == "__main__":
    serve_embedding(MiniLM())
