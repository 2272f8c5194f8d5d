"""The warm start state: memory of ordinary text, from which every sentence may start.

A biLM is trained on running text and never meets a zero state after its first words, so the first
words of a sentence read from zero are predicted worse. The warm state takes that away and is still
one fixed state: results depend on model and sentence alone.
"""

import logging
from importlib.resources import files

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.nn.bilm import BiLMState, Direction, DirectionState
from elmokit.text.word_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD
from elmokit.weights.model_dir import PretrainedBiLM

logger = logging.getLogger(__name__)

NUM_STREAMS = 8
"""Sentences are read in so many streams side by side."""


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
        x, mask = _inputs(model, direction, one)
        _, state = model.run_direction(direction, x.to(device), state=state, mask=mask.to(device))
        hiddens.append(state[0])
        cells.append(state[1])
    start = 1 if len(full_rounds) > 1 else 0
    return tuple(  # pyright: ignore[reportReturnType]
        torch.stack(values[start:]).mean(dim=(0, 2)).unsqueeze(1) for values in (hiddens, cells)
    )


def _inputs(
    model: PretrainedBiLM, direction: Direction, sentences: list[list[str]]
) -> tuple[Tensor, Tensor]:
    """Return token vectors (B, T, D) in reading order and the mask (B, T)."""
    begin, last = SENTENCE_BEGIN_WORD, SENTENCE_END_WORD
    rows = [
        [begin, *words] if direction == "forward" else [last, *reversed(words)]
        for words in sentences
    ]
    words = sorted({word for row in rows for word in row})
    index_of = {word: k for k, word in enumerate(words)}
    lengths = torch.tensor([len(row) for row in rows])
    index = torch.zeros(len(rows), int(lengths.max()), dtype=torch.int64)
    for k, row in enumerate(rows):
        index[k, : len(row)] = torch.tensor([index_of[word] for word in row])
    device = next(model.parameters()).device
    vectors = model.encode_tokens(model.encode_words(words).to(device))
    mask = torch.arange(index.shape[1]).unsqueeze(0) < lengths.unsqueeze(1)
    return functional.embedding(index.to(device), vectors), mask
