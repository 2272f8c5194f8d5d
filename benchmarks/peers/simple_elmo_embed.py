"""Peer: simple_elmo, bilm-tf's inference graph on TensorFlow 2.

Kinder to it than its own defaults: one session for all calls (by default each call loads the
weights anew), no warm-up run inside a call, and its padded result is cut without copying.
"""

import logging
from typing import Any

import numpy as np
import tensorflow as tf  # pyright: ignore[reportMissingImports]
from protocol import EmbeddingProgram, serve_embedding
from simple_elmo import ElmoModel  # pyright: ignore[reportMissingImports]
from simple_elmo.elmo import weight_layers  # pyright: ignore[reportMissingImports]


class SimpleElmo(EmbeddingProgram):
    """One `get_elmo_vectors` a batch."""

    packages = ("simple_elmo", "tensorflow-cpu", "numpy")

    def load(self, *, folder: str, threads: int, max_batch: int, settings: dict[str, Any]) -> None:
        """Load the weights."""
        self.model = ElmoModel()
        logging.getLogger().setLevel(logging.WARNING)
        self.model.load(folder, max_batch_size=max_batch)
        self.session = tf.compat.v1.Session(
            config=tf.compat.v1.ConfigProto(
                intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
            )
        )
        self.model.elmo_sentence_input = weight_layers(
            "input", self.model.sentence_embeddings_op, use_layers="all"
        )
        self.session.run(tf.compat.v1.global_variables_initializer())
        states = [
            variable
            for variable in tf.compat.v1.global_variables()
            if "Variable" in variable.op.name  # unnamed; weights have names
        ]
        assert states
        self.forget = tf.compat.v1.variables_initializer(states)

    def begin_run(self, first_batch: list[list[str]]) -> None:
        """Forget earlier runs."""
        self.session.run(self.forget)  # else sentences go on from those of the last call

    def embed(self, sentences: list[list[str]]) -> list[np.ndarray]:
        """Embed one batch."""
        vectors = self.model.get_elmo_vectors(
            sentences, warmup=False, layers="all", session=self.session
        )
        return [vectors[row, :, : len(words)] for row, words in enumerate(sentences)]


if __name__ == "__main__":
    serve_embedding(SimpleElmo())
