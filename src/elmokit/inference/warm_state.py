"""Reading text in one direction as in training, and the warm start state.

A biLM is trained on running text and sees a zero state only once, so it predicts the first words of
a sentence worse from zero. The warm state, an average after ordinary text, avoids this and is still
fixed: results depend on the model and the sentence alone.
"""

import logging
from collections.abc import Sequence
from importlib.resources import files
from typing import get_args

import numpy as np

from elmokit.bilm.config import Direction
from elmokit.files.hashing import text_sha256
from elmokit.inference.engine import Engine
from elmokit.inference.frozen_bilm import FrozenBiLM
from elmokit.inference.state import DirectionState, LSTMState
from elmokit.shapes import Float

logger = logging.getLogger(__name__)

NUM_STREAMS = 8
"""Parallel streams in which sentences are read."""


def warm_text(stored: tuple[str, ...]) -> tuple[str, ...]:
    """Return the neutral sentences stored with a model, or the package's own if there are none."""
    if stored:
        return stored
    logger.warning("the model stores no neutral text to warm up with; using the package's own")
    text = files("elmokit").joinpath("data/warm.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line)


def warm_metadata(text: Sequence[str]) -> dict[str, str]:
    """Return what names the warm state after these sentences in the metadata of a result."""
    return {"warm_text_sha256": text_sha256("\n".join(text))}


def warm_state(bilm: FrozenBiLM, text: Sequence[str]) -> LSTMState:
    """Return the average state (one row) after the sentences of ``text``, words joined by spaces.

    The text is read as in training (a direction never reads its own end marker), in streams that
    carry their state; the first sentence of each stream is left out of the average.
    """
    vectors, tokens = bilm.encode([line.split() for line in text])
    # round r: sentences r * NUM_STREAMS, …, one for each stream; too few are read again
    sentences = tokens.sentences
    rounds = [
        sentences[k : k + NUM_STREAMS]
        for k in range(0, len(sentences) - NUM_STREAMS + 1, NUM_STREAMS)
    ] or [[sentences[k % len(sentences)] for k in range(NUM_STREAMS)]]
    state = LSTMState.zeros(bilm.network.config.lstm, NUM_STREAMS)
    averages = (
        _average(bilm.engine, direction, vectors, rounds, state.direction(direction))
        for direction in get_args(Direction)
    )
    return LSTMState.from_directions(*averages)


def _average(
    engine: Engine,
    direction: Direction,
    vectors: np.ndarray,
    rounds: list[list[np.ndarray]],
    state: DirectionState,
) -> DirectionState:
    states = []
    for sentences in rounds:
        inputs = [inputs_of(direction, sentence) for sentence in sentences]
        state = engine.read(direction, vectors, inputs, state)
        states.append(state)
    # the first sentences began at zero, which is what the warm state avoids
    hiddens, cells = zip(*(states[1:] or states), strict=True)
    return _mean_of_streams(hiddens), _mean_of_streams(cells)


def _mean_of_streams(parts: Sequence[np.ndarray]) -> Float[np.ndarray, "N 1 X"]:
    """Return the mean over rounds and streams of (N, streams, X).

    It adds in the order of PyTorch, which made the warm vectors that people have stored: another
    order would change their last bits.
    """
    total = np.zeros_like(parts[0][:, 0])
    for part in parts:
        quarters = part[:, : NUM_STREAMS // 2] + part[:, NUM_STREAMS // 2 :]
        sums = quarters[:, 0]
        for number in range(1, NUM_STREAMS // 2):
            sums = sums + quarters[:, number]
        total = total + sums
    return (total / np.float32(len(parts) * NUM_STREAMS))[:, None]


def inputs_of(direction: Direction, sentence: np.ndarray) -> np.ndarray:
    """Return what a direction reads of a sentence: all but the boundary at its end."""
    return sentence[:-1] if direction == "forward" else sentence[1:]
