"""Perplexity of a model on a text by the exact softmax.

Every sentence is read from one fixed state, in each direction: the forward model reads
``<S> w1 … wn`` and predicts ``w1 … wn </S>``, the backward model reads ``</S> wn … w1`` and
predicts ``wn … w1 <S>``. Outputs are scored chunk by chunk, so memory is bounded.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.bilm import BiLMState, Direction
from elmokit.bilm.device import pick_device
from elmokit.corpus.readers import ReadReport, read_sentences
from elmokit.errors import InputError
from elmokit.inference.batching import batch_by_length, fill_buffers
from elmokit.inference.distinct_words import DistinctTokens
from elmokit.inference.frozen_bilm import FrozenBiLM
from elmokit.inference.target_scores import TargetScores
from elmokit.inference.warm_state import inputs_of, targets_of, warm_state, warm_text
from elmokit.kernels.inference import load_kernels
from elmokit.metrics.perplexity import PerplexityCounter, PerplexityReport
from elmokit.text.given_sentences import GivenSentence, split_sentences
from elmokit.text.normalization import normalize
from elmokit.text.tokenizers.registry import build_tokenizer, tokenizer_for_model
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.model_dir import PretrainedBiLM, load_model

log = logging.getLogger(__name__)

BATCH_TOKENS = 8192
"""Most positions computed together; a longer sentence goes alone."""
BUFFER_TOKENS = 100_000
"""Positions sorted by length together."""
MUCH_UNKNOWN = 0.3
"""Share of unknown words above which a perplexity is misleading; 0.05 is usual in the domain."""
StartState = Literal["warm", "reset"]
ScoringPrecision = Literal["auto", "fp32", "bf16"]


def perplexity(
    model: PretrainedBiLM | str | PathLike[str],
    sentences: Iterable[GivenSentence],
    *,
    batch_size: int = 64,
    state: StartState | str = "warm",
    precision: ScoringPrecision | str = "auto",
    on_sentences: Callable[[int], None] = lambda done: None,
) -> PerplexityReport:
    """Score every word and every sentence end of ``sentences`` once, in both directions.

    Args:
        model: With vocabulary and softmax; or its directory or name.
        sentences: Strings, which the model's tokenizer splits, or lists of words; empty ones are
            skipped.
        batch_size: Most sentences computed together; does not affect the result.
        state: Start of every sentence: ``warm``, the state after ordinary text, or ``reset``.
        precision: ``bf16`` is faster and changes the figures by about 1e-4 of their value;
            ``auto`` uses it on CPUs with instructions for it.
        on_sentences: Called with the number of sentences done.

    Raises:
        ValueError: for an unknown option, a model without vocabulary or softmax, or no text.
        TypeError: if ``sentences`` is one string, or a sentence holds anything but strings.
    """
    if not isinstance(model, PretrainedBiLM):
        model = load_model(model)
    given = split_sentences(sentences, model.tokenize)
    vocab = scoring_vocab(model)
    for name, value, choices in (
        ("state", state, get_args(StartState)),
        ("precision", precision, get_args(ScoringPrecision)),
    ):
        if value not in choices:
            raise InputError(f"`{name}` must be one of {', '.join(choices)}, got {value!r}.")
    if batch_size < 1:
        raise InputError(f"`batch_size` must be at least 1, got {batch_size}.")
    is_bf16 = precision == "bf16" or (precision == "auto" and _has_quick_bf16(model))
    chosen: Literal["fp32", "bf16"] = "bf16" if is_bf16 else "fp32"
    bilm = FrozenBiLM(model, precision=chosen)
    assert model.softmax is not None
    scores = TargetScores(model.softmax, precision=chosen)
    start = BiLMState.zeros(model.config.lstm, 1, device=bilm.network.device)
    if state == "warm":
        start = warm_state(bilm, warm_text(model.warm_text))
    counter, done = PerplexityCounter(), 0
    form = model.config.char_vocab.normalization
    stream = ([normalize(word, form) for word in words] for words in given if words)
    for buffer in fill_buffers(stream, max_tokens=BUFFER_TOKENS):
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
            done += len(rows)
            on_sentences(done)
    return counter.report(vocabulary=len(vocab), state=state)


def _has_quick_bf16(model: PretrainedBiLM) -> bool:
    kernels = load_kernels() if next(model.parameters()).device.type == "cpu" else None
    return kernels is not None and "bf16" in kernels.quick_kinds


def scoring_vocab(model: PretrainedBiLM) -> WordVocab:
    """Return the vocabulary, or raise `ValueError` if the model has no vocabulary or softmax."""
    if model.word_vocab is None or model.softmax is None:
        if model.softmax is not None:
            raise InputError(
                f"This model has a softmax over {model.softmax.num_words} words, but no vocabulary "
                "for it: put its vocab.txt into the model directory, or convert it again with "
                "`elmokit convert … --vocab VOCAB`."
            )
        raise InputError(
            "This model has no softmax over words, so it has no perplexity (released weight files "
            "come without one). Train one on your text with `elmokit finetune MODEL CORPUS --vocab "
            "VOCAB -o DIR`, or convert with the softmax file: `elmokit convert … --softmax FILE "
            "--vocab VOCAB`."
        )
    return model.word_vocab


def _count(tokens: DistinctTokens, vocab: WordVocab, counter: PerplexityCounter) -> None:
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

    ``words`` has the token vectors and word ids of the distinct words, ``sentences`` are rows of
    them with boundaries, ``start`` is the state (one row) before every sentence.
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
    """Score raw text files, read like a corpus, with a stored model; see `perplexity`.

    ``read`` counts lines read and skipped. Warns if ``tokenizer`` is not the model's own (the
    default), and if too many words are unknown.
    """
    model = load_model(model_path).to(pick_device(device))
    scoring_vocab(model)
    splitter = build_tokenizer(tokenizer_for_model(model.tokenizer, tokenizer))
    form = model.config.char_vocab.normalization
    sentences = read_sentences(list(paths), splitter, normalization=form, report=read)
    found = perplexity(model, sentences, batch_size=batch_size, state=state)
    if found.oov_rate > MUCH_UNKNOWN:
        log.warning(
            "%.0f %% of the words are unknown to the model: these figures mostly show how well it "
            "predicts <UNK> and cannot be compared. Is the text in its language, and split into "
            "words by its tokenizer?", 100 * found.oov_rate,
        )  # fmt: skip
    return found
