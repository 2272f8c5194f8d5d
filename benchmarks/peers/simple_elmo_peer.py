"""Peer: simple_elmo, bilm-tf's inference graph on TensorFlow 2.

Kinder to it than its own defaults: one session for all calls (by default each call loads the
weights anew), no warm-up run inside a call, and its padded result is cut without copying.
"""

import logging

import numpy as np
import tensorflow as tf  # pyright: ignore[reportMissingImports]
from protocol import answer, read_request, time_embedding
from simple_elmo import ElmoModel  # pyright: ignore[reportMissingImports]
from simple_elmo.elmo import weight_layers  # pyright: ignore[reportMissingImports]

v1 = tf.compat.v1


def main() -> None:
    request = read_request()
    model = ElmoModel()
    logging.getLogger().setLevel(logging.WARNING)
    model.load(request["folder"], max_batch_size=max(map(len, request["calls"])))
    names = ("intra_op_parallelism_threads", "inter_op_parallelism_threads")
    settings = v1.ConfigProto(**dict.fromkeys(names, request["threads"]))
    session = v1.Session(config=settings)
    model.elmo_sentence_input = weight_layers(
        "input", model.sentence_embeddings_op, use_layers="all"
    )
    session.run(v1.global_variables_initializer())
    # states are the unnamed variables; weights have names
    states = [one for one in v1.global_variables() if "Variable" in one.op.name]
    assert states
    forget = v1.variables_initializer(states)

    def embed(sentences: list[list[str]]) -> list[np.ndarray]:
        vectors = model.get_elmo_vectors(sentences, warmup=False, layers="all", session=session)
        return [vectors[row, :, : len(words)] for row, words in enumerate(sentences)]

    # without forgetting, sentences go on from those of the last call
    timed = time_embedding(request["calls"], embed, lambda: session.run(forget))
    answer(("simple_elmo", "tensorflow-cpu", "numpy"), **timed)


if __name__ == "__main__":
    main()
