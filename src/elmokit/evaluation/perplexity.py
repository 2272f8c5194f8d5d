"""Perplexity of a model on a text by the exact softmax: every target once, whatever the batch size.

Each direction is read on its own, in its reading order, from one fixed state at every sentence:
the forward model reads ``<S> w1 … wn`` and is asked for ``w1 … wn </S>``, the backward model reads
``</S> wn … w1`` and is asked for ``wn … w1 <S>``. Long sentences are read in pieces with the state
handed on, so memory is bounded.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch.nn import functional

from elmokit.bilm.bilm import BiLMState, Direction
from elmokit.bilm.device import pick_device
from elmokit.corpus.readers import ReadReport, read_sentences
from elmokit.errors import InputError, as_input_error
from elmokit.inference.warm_state import distinct_vectors, reading_order, warm_state
from elmokit.metrics.perplexity import PerplexityCounter, PerplexityReport
from elmokit.text.normalization import normalize
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import PretrainedBiLM, load_model

log = logging.getLogger(__name__)

PIECE = 128
"""Positions that are read at once."""
BATCH_WORDS = 8192
"""Words, padding included, that are computed together at most; a longer sentence goes alone."""
BUFFER = 100_000
"""Words of the sentences that are sorted by length together."""
MUCH_UNKNOWN = 0.3
"""Share of unknown words from which a perplexity misleads; a text of the model's kind has 0.05."""
StartState = Literal["warm", "reset"]


def perplexity(
    model: PretrainedBiLM,
    sentences: Iterable[Sequence[str]],
    *,
    batch_size: int = 64,
    state: StartState | str = "warm",
) -> PerplexityReport:
    """Score every word and every sentence end of ``sentences`` once, in both directions.

    Args:
        model: With vocabulary and softmax.
        sentences: Tokenized, as the model's tokenizer does; empty sentences are passed over.
        batch_size: Sentences computed together, fewer of long ones; the result does not depend on
            it.
        state: What every sentence starts from: ``warm``, the memory of ordinary text, as in
            training; or ``reset``, zeros.

    Raises:
        ValueError: if ``state`` is neither, the model has no vocabulary or softmax, or there is
            nothing to score.
    """
    vocab = scoring_vocab(model)
    if state not in get_args(StartState):
        raise InputError(
            f"`state` must be one of {', '.join(get_args(StartState))}, got {state!r}."
        )
    counter = PerplexityCounter()
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            start = warm_state(model) if state == "warm" else _zeros(model)
            for batch in _batches(sentences, batch_size):
                _score(model, vocab, batch, counter, start)
    finally:
        model.train(training)
    return counter.report(vocabulary=len(vocab), state=state)


def scoring_vocab(model: PretrainedBiLM) -> WordVocab:
    """Return the vocabulary of a model that can be scored.

    Raises:
        ValueError: if the model came without vocabulary or softmax.
    """
    if model.word_vocab is None or model.softmax is None:
        if model.softmax is not None:
            raise InputError(
                f"This model has a softmax over {model.softmax.num_words} words, but came without "
                "the vocabulary that says which: put its vocab.txt into the model directory, or "
                "convert it again with `elmokit convert … --vocab VOCAB`."
            )
        raise InputError(
            "This model has no softmax over words, so it has no perplexity (released weight files "
            "come without one). Train one on your text with `elmokit finetune MODEL CORPUS --vocab "
            "VOCAB -o DIR`, or convert with the softmax file: `elmokit convert … --softmax FILE "
            "--vocab VOCAB`."
        )
    return model.word_vocab


def _zeros(model: PretrainedBiLM) -> BiLMState:
    return BiLMState.zeros(model.config.lstm, 1, device=next(model.parameters()).device)


def _batches(sentences: Iterable[Sequence[str]], batch_size: int) -> Iterator[list[Sequence[str]]]:
    """Yield sentences of like length together; only a buffer of them is held."""
    buffer: list[Sequence[str]] = []
    num_words = 0
    for sentence in sentences:
        if len(sentence) == 0:
            continue
        buffer.append(sentence)
        num_words += len(sentence)
        if num_words >= BUFFER:
            yield from _by_length(buffer, batch_size)
            buffer, num_words = [], 0
    yield from _by_length(buffer, batch_size)


def _by_length(buffer: list[Sequence[str]], batch_size: int) -> Iterator[list[Sequence[str]]]:
    """Yield a buffer's sentences from the shortest to the longest, in bounded batches."""
    batch: list[Sequence[str]] = []
    for sentence in sorted(buffer, key=len):
        is_full = len(batch) == batch_size or (len(batch) + 1) * len(sentence) > BATCH_WORDS
        if batch and is_full:
            yield batch
            batch = []
        batch.append(sentence)
    if batch:
        yield batch


def _score(
    model: PretrainedBiLM,
    vocab: WordVocab,
    sentences: list[Sequence[str]],
    counter: PerplexityCounter,
    start: BiLMState,
) -> None:
    """Add one batch to the sums."""
    form = model.config.char_vocab.normalization
    rows = [[normalize(word, form) for word in sentence] for sentence in sentences]
    for row in rows:
        counter.sentences += 1
        counter.tokens += len(row) + 1
        counter.text_bytes += sum(len(word.encode("utf-8", "ignore")) for word in row)
    ahead = [reading_order("forward", row) for row in rows]
    back = [reading_order("backward", row) for row in rows]
    counter.forward_nats += _direction_nats(model, vocab, "forward", ahead, start)
    counter.backward_nats += _direction_nats(model, vocab, "backward", back, start)
    counter.unknown_words += sum(int((vocab.encode(row) == vocab.unknown_id).sum()) for row in rows)


def _direction_nats(
    model: PretrainedBiLM,
    vocab: WordVocab,
    direction: Direction,
    rows: list[list[str]],
    start: BiLMState,
) -> float:
    """Return the summed loss of predicting each row's words 1… from the words before them."""
    softmax = model.softmax
    assert softmax is not None
    longest = max(map(len, rows)) - 1
    targets = np.zeros((len(rows), longest), dtype=np.int64)
    for k, row in enumerate(rows):
        targets[k, : len(row) - 1] = vocab.encode(row[1:])
    vectors, inputs = distinct_vectors(model, [row[:-1] for row in rows])
    state = start.rows(torch.zeros(len(rows), dtype=torch.int64)).direction(direction)
    nats = 0.0
    for begin in range(0, longest, PIECE):
        piece = inputs[:, begin : begin + PIECE]
        ids = torch.from_numpy(targets[:, begin : begin + PIECE]).to(piece.device)
        x = functional.embedding(piece.clamp(min=0), vectors)
        outputs, state = model.run_direction(direction, x, state=state, mask=ids > 0)
        nats += float(softmax.nll(outputs[-1][ids > 0], ids[ids > 0]).double().sum())
    return nats


def perplexity_of_files(
    model_path: str,
    paths: Sequence[Path],
    *,
    batch_size: int = 64,
    tokenizer: str | None = None,
    device: str = "auto",
    state: StartState | str = "warm",
    read: ReadReport | None = None,
) -> PerplexityReport:
    """Score text files with a stored model; see `perplexity`.

    Args:
        model_path: Model directory or name.
        paths: Raw text, read as a corpus is.
        batch_size: Sentences computed together.
        tokenizer: Another tokenizer than the model's own; a difference is warned about.
        device: ``auto``, ``cpu`` or ``cuda``.
        state: What every sentence starts from.
        read: Counts what is read of the files, and the lines that are skipped.

    A warning is logged where most of what is scored is the unknown word.
    """
    with as_input_error():
        torch_device = pick_device(device)
    model = load_model(find_model(model_path)).to(torch_device)
    scoring_vocab(model)
    chosen = build_tokenizer(model.tokenizer if tokenizer is None else tokenizer)
    if chosen.name != model.tokenizer.name:
        log.warning(
            "the text is split by tokenizer %r, the model was trained with %r",
            chosen.name,
            model.tokenizer.name,
        )
    form = model.config.char_vocab.normalization
    sentences = read_sentences(list(paths), chosen, normalization=form, report=read)
    found = perplexity(model, sentences, batch_size=batch_size, state=state)
    if found.oov_rate > MUCH_UNKNOWN:
        log.warning(
            "%.0f %% of the words are unknown to the model: these figures mostly say how well it "
            "guesses <UNK>, and are good for no comparison. Is the text in its language, and split "
            "into words as its tokenizer does?",
            100 * found.oov_rate,
        )
    return found
