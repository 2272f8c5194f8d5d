"""A warning of text on which a model amplifies rounding: tables, lists, a word again and again."""

import logging
from collections.abc import Sequence
from typing import get_args

import numpy as np

from elmokit.bilm.config import Direction
from elmokit.inference.engine import Engine
from elmokit.inference.results import LSTMState
from elmokit.shapes import Float, Integer

log = logging.getLogger(__name__)

BLOCK = 32
"""Tokens of a stretch that may be machine-like."""
MIN_LIKENESS = 0.5
"""Mean cosine of the token vectors of a stretch, above which it is tried; natural text has 0.35 to
0.45, and at most 0.5 in 998 of 1,000 stretches.
"""
MAX_TOKENS = 2000
"""Tokens that are tried, from the start of the stretch."""
RELATIVE_CHANGE = 1e-6
"""Change of the token vectors: some units in the last place of fp32."""
MAX_DIFFERENCE = 1e-4
"""Change of the outputs above which it was amplified; on 2,000 words of natural text it is 1e-5."""
TRIED_SHARE, FREE_TOKENS = 0.02, 4_000
"""Part of all tokens that may be tried, after the first ones; each takes as long as four others."""


class DivergenceCheck:
    """Tries machine-like stretches of the sentences that an engine reads in fp32; warns once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_open = engine.network.precision == "fp32"
        self._allowed = float(FREE_TOKENS)

    def check(
        self, vectors: Float[np.ndarray, "U D"], sentences: Sequence[Integer[np.ndarray, " _"]]
    ) -> None:
        """Look at sentences, given as rows of ``vectors``, and warn of the first that diverges."""
        for rows in sentences:
            if not self._is_open:
                return
            self._allowed += TRIED_SHARE * len(rows)
            start = _machine_like(vectors, rows) if len(rows) >= BLOCK else None
            if start is None:
                continue
            tried = rows[start : start + MAX_TOKENS]
            if len(tried) > self._allowed:
                continue
            self._allowed -= len(tried)
            difference = amplified(self._engine, vectors[tried])
            if difference > MAX_DIFFERENCE:
                self._is_open = False
                log.warning(
                    "a sentence of %d words repeats itself like a table or a list, and the model "
                    "amplifies rounding there: a change of its input by 1e-6 changes its vectors "
                    "by up to %.2g. Other processors, precisions and programs may compute as "
                    "different ones. Shorter sentences (about 20 words) avoid it.",
                    len(rows) - 2, difference,
                )  # fmt: skip


def amplified(engine: Engine, inputs: Float[np.ndarray, "T D"]) -> float:
    """Return the largest change of the top layer if the token vectors change by about 1e-6."""
    noise = np.random.default_rng(0).standard_normal(inputs.shape, dtype=np.float32)
    both = np.concatenate((inputs, inputs * (1 + np.float32(RELATIVE_CHANGE) * noise)))
    sentences = list(np.arange(len(both)).reshape(2, -1))
    state = LSTMState.zeros(engine.network.config.lstm, 2)
    largest = 0.0

    def compare(outputs: np.ndarray, sentence: np.ndarray, position: np.ndarray) -> None:
        nonlocal largest
        difference = outputs[sentence == 0] - outputs[sentence == 1]
        largest = max(largest, float(np.abs(difference).max()))

    for direction in get_args(Direction):
        engine.read(direction, both, sentences, state.direction(direction), on_top=compare)
    return largest


def _machine_like(vectors: np.ndarray, rows: np.ndarray) -> int | None:
    """Return where the first stretch of similar token vectors begins, if there is one."""
    num_blocks = len(rows) // BLOCK
    stretch = vectors[rows[: num_blocks * BLOCK]]
    norms = np.linalg.norm(stretch, axis=-1, keepdims=True)
    directions = stretch / np.maximum(norms, 1e-12)
    means = directions.reshape(num_blocks, BLOCK, -1).mean(axis=1)
    similar = np.flatnonzero(np.square(means).sum(axis=-1) > MIN_LIKENESS)
    return BLOCK * int(similar[0]) if len(similar) else None
