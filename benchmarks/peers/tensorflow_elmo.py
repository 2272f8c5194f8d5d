"""Peer: simple_elmo, bilm-tf's inference graph on TensorFlow 2, and the training graph it ships.

Kinder to it than its own defaults: one session for all calls (by default each call loads the
weights anew), no warm-up run inside a call, and its padded result is cut without copying. Graph,
Adagrad and clipping of the training are those of its `train`; summaries are left out.
"""

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf  # pyright: ignore[reportMissingImports]
from protocol import EmbeddingProgram, serve, serve_embedding, versions
from simple_elmo import ElmoModel  # pyright: ignore[reportMissingImports]
from simple_elmo.elmo import weight_layers  # pyright: ignore[reportMissingImports]
from simple_elmo.training import LanguageModel, clip_grads  # pyright: ignore[reportMissingImports]

v1 = tf.compat.v1


def new_session(threads: int) -> Any:
    """Return a session that uses so many threads."""
    names = ("intra_op_parallelism_threads", "inter_op_parallelism_threads")
    return v1.Session(config=v1.ConfigProto(**dict.fromkeys(names, threads)))


class SimpleElmo(EmbeddingProgram):
    """One `get_elmo_vectors` a batch."""

    packages = ("simple_elmo", "tensorflow-cpu", "numpy")

    def load(self, *, folder: str, threads: int, max_batch: int, settings: dict[str, Any]) -> None:
        self.model = ElmoModel()
        logging.getLogger().setLevel(logging.WARNING)
        self.model.load(folder, max_batch_size=max_batch)
        self.session = new_session(threads)
        self.model.elmo_sentence_input = weight_layers(
            "input", self.model.sentence_embeddings_op, use_layers="all"
        )
        self.session.run(v1.global_variables_initializer())
        states = [
            variable
            for variable in v1.global_variables()
            if "Variable" in variable.op.name  # unnamed; weights have names
        ]
        assert states
        self.forget = v1.variables_initializer(states)

    def begin_run(self, first_batch: list[list[str]]) -> None:
        self.session.run(self.forget)  # else sentences go on from those of the last call

    def embed(self, sentences: list[list[str]]) -> list[np.ndarray]:
        vectors = self.model.get_elmo_vectors(
            sentences, warmup=False, layers="all", session=self.session
        )
        return [vectors[row, :, : len(words)] for row, words in enumerate(sentences)]


class BilmTf:
    """Graph, session and windows of raw character ids."""

    def load(self, folder: str, threads: int) -> dict[str, Any]:
        v1.disable_eager_execution()
        options = json.loads(Path(folder, "bilm_tf_options.json").read_text(encoding="utf-8"))
        with np.load(Path(folder, "windows.npz")) as arrays:
            self.windows = {name: arrays[name] for name in arrays.files}
        global_step = v1.get_variable(
            "global_step", [], initializer=v1.zeros_initializer(), trainable=False
        )
        optimizer = v1.train.AdagradOptimizer(
            learning_rate=options["learning_rate"], initial_accumulator_value=1.0
        )
        with v1.variable_scope("lm"):
            self.model = LanguageModel(options, True)
        gradients = optimizer.compute_gradients(
            self.model.total_loss * options["unroll_steps"],
            aggregation_method=tf.AggregationMethod.EXPERIMENTAL_TREE,
        )
        gradients, _ = clip_grads(gradients, options, False, global_step)
        self.update = optimizer.apply_gradients(gradients, global_step=global_step)
        self.session = new_session(threads)
        self.session.run(v1.global_variables_initializer())
        self.states = self.session.run(
            self.model.init_lstm_state, feed_dict=self.feed(0, with_states=False)
        )
        self.step = 0
        self.run(1)
        return {"versions": versions(["simple_elmo", "tensorflow-cpu"])}

    def run(self, steps: int) -> dict[str, Any]:
        started = time.perf_counter()
        for _ in range(steps):
            _, _, *self.states = self.session.run(
                [self.update, self.model.total_loss, *self.model.final_lstm_state],
                feed_dict=self.feed(self.step, with_states=True),
            )
            self.step += 1
        return {"seconds": time.perf_counter() - started}

    def feed(self, step: int, *, with_states: bool) -> dict[Any, Any]:
        """Return the placeholders of one window."""
        model, index = self.model, step % len(self.windows["forward_chars"])
        fed = {
            model.tokens_characters: self.windows["forward_chars"][index],
            model.tokens_characters_reverse: self.windows["backward_chars"][index],
        }
        if with_states:
            fed[model.next_token_id] = self.windows["forward_targets"][index]
            fed[model.next_token_id_reverse] = self.windows["backward_targets"][index]
            fed |= dict(zip(model.init_lstm_state, self.states, strict=True))
        return fed


if __name__ == "__main__":
    if sys.argv[1] == "embed":
        serve_embedding(SimpleElmo())
    else:
        program = BilmTf()
        serve({"load": program.load, "run": program.run})
