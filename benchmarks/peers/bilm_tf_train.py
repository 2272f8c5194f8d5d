"""Peer: bilm-tf's training graph, in the copy that simple_elmo ships, on TensorFlow 2.

The graph, its Adagrad and its clipping are those of its `train`; summaries are left out.
"""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf  # pyright: ignore[reportMissingImports]
from protocol import serve, versions
from simple_elmo.training import LanguageModel, clip_grads  # pyright: ignore[reportMissingImports]

v1 = tf.compat.v1


class BilmTf:
    """Graph, session and windows of raw character ids."""

    def load(self, folder: str, threads: int) -> dict[str, Any]:
        """Load the weights."""
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
        self.session = v1.Session(
            config=v1.ConfigProto(
                intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
            )
        )
        self.session.run(v1.global_variables_initializer())
        self.states = self.session.run(
            self.model.init_lstm_state, feed_dict=self.feed(0, with_states=False)
        )
        self.step = 0
        self.run(1)
        return {"versions": versions(["simple_elmo", "tensorflow-cpu"])}

    def run(self, steps: int) -> dict[str, Any]:
        """Make some updates and return their seconds."""
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
    program = BilmTf()
    serve({"load": program.load, "run": program.run})
