"""Reading text in one direction as in training, and the warm start state.

A biLM is trained on running text and meets a zero state once, at its very beginning; the first
words of a sentence read from zero are predicted worse. The warm state, the memory of ordinary text,
takes that away and is still one fixed state: results depend on model and sentence alone.
"""

import logging
from collections.abc import Sequence
from importlib.resources import files

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from elmokit.bilm.bilm import BiLMState, Direction, DirectionState
from elmokit.text.word_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD
from elmokit.weights.model_dir import PretrainedBiLM

logger = logging.getLogger(__name__)

NUM_STREAMS = 8
"""Sentences are read in so many streams side by side."""
CHUNK = 1024
"""Words that go through the token layer at once."""


def warm_text(model: PretrainedBiLM) -> tuple[str, ...]:
    """Return the neutral sentences of a model, or those of the package for a model without any."""
    if model.warm_text:
        return model.warm_text
    logger.warning("the model stores no neutral text to warm up with; using the package's own")
    text = files("elmokit").joinpath("data/warm.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line)


def warm_state(model: PretrainedBiLM) -> BiLMState:
    """Return the state of one row after ordinary sentences.

    The neutral text is read as in training (a direction never reads its own end marker) in streams
    that carry their state; the states after all sentences but the streams' first are averaged.
    """
    sentences = [line.split() for line in warm_text(model)]
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            directions = [_average(model, name, sentences) for name in ("forward", "backward")]
    finally:
        model.train(training)
    return BiLMState.from_directions(*directions)


def _average(
    model: PretrainedBiLM, direction: Direction, sentences: list[list[str]]
) -> DirectionState:
    device = next(model.parameters()).device
    state = BiLMState.zeros(model.config.lstm, NUM_STREAMS, device=device).direction(direction)
    rounds = [sentences[k : k + NUM_STREAMS] for k in range(0, len(sentences), NUM_STREAMS)]
    full_rounds = [one for one in rounds if len(one) == NUM_STREAMS] or [
        [sentences[k % len(sentences)] for k in range(NUM_STREAMS)]
    ]
    hiddens: list[Tensor] = []
    cells: list[Tensor] = []
    for one in full_rounds:
        read = [reading_order(direction, words)[:-1] for words in one]
        vectors, index = distinct_vectors(model, read)
        mask = index >= 0
        x = functional.embedding(index.clamp(min=0), vectors)  # (B, T, D)
        _, state = model.run_direction(direction, x, state=state, mask=mask)
        hiddens.append(state[0])
        cells.append(state[1])
    start = 1 if len(full_rounds) > 1 else 0
    hidden, cell = (
        torch.stack(values[start:]).mean(dim=(0, 2)).unsqueeze(1) for values in (hiddens, cells)
    )
    return hidden, cell


def reading_order(direction: Direction, words: Sequence[str]) -> list[str]:
    """Return a sentence as one direction reads it; its last boundary is only ever a target."""
    whole = [SENTENCE_BEGIN_WORD, *words, SENTENCE_END_WORD]
    return whole if direction == "forward" else whole[::-1]


def distinct_vectors(
    model: PretrainedBiLM, rows: Sequence[Sequence[str]]
) -> tuple[Float[Tensor, "U D"], Int[Tensor, "B T"]]:
    """Run the token layer once over each distinct word of some rows of words.

    Returns:
        The vectors, and the rows as indices into them, padded with -1.
    """
    slot_of: dict[str, int] = {}
    index = np.full((len(rows), max(map(len, rows))), -1, dtype=np.int64)
    for k, row in enumerate(rows):
        index[k, : len(row)] = [slot_of.setdefault(word, len(slot_of)) for word in row]
    device = next(model.parameters()).device
    words = list(slot_of)
    chunks = [
        model.encode_tokens(model.encode_words(words[begin : begin + CHUNK]).to(device))
        for begin in range(0, len(words), CHUNK)
    ]
    return torch.cat(chunks), torch.from_numpy(index).to(device)
