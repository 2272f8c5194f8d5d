"""Perplexity of a model on a text by the exact softmax: every target once, whatever the batch size.

Each direction is read on its own, in its reading order, from one fixed state at every sentence:
the forward model reads ``<S> w1 … wn`` and is asked for ``w1 … wn </S>``, the backward model reads
``</S> wn … w1`` and is asked for ``wn … w1 <S>``. The outputs are scored as they come, so memory is
bounded however long a sentence is.
"""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.bilm import BiLMState, Direction
from elmokit.bilm.device import pick_device
from elmokit.corpus.readers import ReadReport, read_sentences
from elmokit.errors import InputError, as_input_error
from elmokit.inference.batching import batch_by_length, fill_buffers
from elmokit.inference.distinct_words import DistinctTokens
from elmokit.inference.frozen_bilm import FrozenBiLM
from elmokit.inference.target_scores import TargetScores
from elmokit.inference.warm_state import inputs_of, targets_of, warm_state, warm_text
from elmokit.kernels.inference import load_kernels
from elmokit.metrics.perplexity import PerplexityCounter, PerplexityReport
from elmokit.text.normalization import normalize
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import PretrainedBiLM, load_model

log = logging.getLogger(__name__)

BATCH_TOKENS = 8192
"""Positions that are computed together at most; a longer sentence goes alone."""
BUFFER_TOKENS = 100_000
"""Positions of the sentences that are sorted by length together."""
MUCH_UNKNOWN = 0.3
"""Share of unknown words from which a perplexity misleads; a text of the model's kind has 0.05."""
StartState = Literal["warm", "reset"]
ScoringPrecision = Literal["auto", "fp32", "bf16"]


def perplexity(
    model: PretrainedBiLM,
    sentences: Iterable[Sequence[str]],
    *,
    batch_size: int = 64,
    state: StartState | str = "warm",
    precision: ScoringPrecision | str = "auto",
) -> PerplexityReport:
    """Score every word and every sentence end of ``sentences`` once, in both directions.

    Args:
        model: With vocabulary and softmax.
        sentences: Tokenized, as the model's tokenizer does; empty sentences are passed over.
        batch_size: Sentences computed together, fewer of long ones; the result does not depend on
            it.
        state: What every sentence starts from: ``warm``, the memory of ordinary text, as in
            training; or ``reset``, zeros.
        precision: ``bf16`` is quicker, and moves the figures by less than 1e-4 of their value;
            ``auto`` takes it where the processor has instructions for it.

    Raises:
        ValueError: if an option is none of its choices, the model has no vocabulary or softmax, or
            there is nothing to score.
    """
    vocab = scoring_vocab(model)
    for name, value, choices in (
        ("state", state, get_args(StartState)),
        ("precision", precision, get_args(ScoringPrecision)),
    ):
        if value not in choices:
            raise InputError(f"`{name}` must be one of {', '.join(choices)}, got {value!r}.")
    is_bf16 = precision == "bf16" or (precision == "auto" and _has_quick_bf16(model))
    chosen: Literal["fp32", "bf16"] = "bf16" if is_bf16 else "fp32"
    bilm = FrozenBiLM(model, precision=chosen)
    assert model.softmax is not None
    scores = TargetScores(model.softmax, precision=chosen)
    start = BiLMState.zeros(model.config.lstm, 1, device=bilm.network.device)
    if state == "warm":
        start = warm_state(bilm, warm_text(model))
    counter = PerplexityCounter()
    form = model.config.char_vocab.normalization
    words = (
        [normalize(word, form) for word in sentence] for sentence in sentences if len(sentence)
    )
    for buffer in fill_buffers(words, max_tokens=BUFFER_TOKENS):
        vectors, tokens = bilm.encode(buffer)
        _count(tokens, vocab, counter)
        word_ids = vocab.encode(tokens.words)
        lengths = [len(sentence) for sentence in tokens.sentences]
        for batch in batch_by_length(lengths, max_tokens=BATCH_TOKENS, max_sentences=batch_size):
            rows = [tokens.sentences[i] for i in batch]
            forward, backward = (
                _direction_nats(bilm, scores, direction, (vectors, word_ids), rows, start)
                for direction in get_args(Direction)
            )
            counter.forward_nats += forward
            counter.backward_nats += backward
    return counter.report(vocabulary=len(vocab), state=state)


def _has_quick_bf16(model: PretrainedBiLM) -> bool:
    kernels = load_kernels() if next(model.parameters()).device.type == "cpu" else None
    return kernels is not None and "bf16" in kernels.quick_kinds


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


def _count(tokens: DistinctTokens, vocab: WordVocab, counter: PerplexityCounter) -> None:
    """Add the sentences' sizes and unknown words to the sums."""
    is_unknown = vocab.encode(tokens.words) == vocab.unknown_id
    num_bytes = np.array([len(word.encode("utf-8", "ignore")) for word in tokens.words])
    for sentence in tokens.sentences:
        words = sentence[1:-1]
        counter.sentences += 1
        counter.tokens += len(words) + 1
        counter.text_bytes += int(num_bytes[words].sum())
        counter.unknown_words += int(is_unknown[words].sum())


def _direction_nats(
    bilm: FrozenBiLM,
    scores: TargetScores,
    direction: Direction,
    words: tuple[Tensor, np.ndarray],
    sentences: Sequence[np.ndarray],
    start: BiLMState,
) -> float:
    """Return the summed loss of one direction over a batch.

    Args:
        bilm: What reads.
        scores: The output layer.
        direction: Which way.
        words: Token vectors and word ids of the distinct words.
        sentences: Rows of these, boundaries included.
        start: What every sentence starts from, of one row.
    """
    vectors, word_ids = words
    inputs = [inputs_of(direction, sentence) for sentence in sentences]
    targets = word_ids[np.concatenate([targets_of(direction, sentence) for sentence in sentences])]
    first = np.cumsum([0, *map(len, inputs)])
    nats = 0.0

    def score(outputs: Tensor, sentence: np.ndarray, position: np.ndarray) -> None:
        nonlocal nats
        ids = torch.from_numpy(targets[first[sentence] + position])
        nats += float(scores.nll(outputs, ids.to(outputs.device)).double().sum())

    state = start.rows(torch.zeros(len(sentences), dtype=torch.int64)).direction(direction)
    bilm.engine.read(direction, vectors, inputs, state, on_top=score)
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
