"""`TextScorer`: every target of a text under the exact softmax, once in each direction.

The forward model reads ``<S> w1 … wn`` and predicts ``w1 … wn </S>``, the backward model reads
``</S> wn … w1`` and predicts ``wn … w1 <S>``, both from one fixed state. Sentences with a common
beginning (end, backward) are read together to where they part.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from elmokit.bilm.config import Direction
from elmokit.errors import InputError, check_choice
from elmokit.inference.contexts import (
    DistinctTokens,
    cut_batches,
    fill_buffers,
    find_contexts,
    read_contexts,
)
from elmokit.inference.device import find_device, has_quick_bf16
from elmokit.inference.frozen_bilm import FrozenBiLM, warm_metadata, warm_state, warm_text
from elmokit.inference.layers_and_states import LSTMState, StartState
from elmokit.inference.target_scores import DistributionTable, TargetScores
from elmokit.shapes import Bool, Float, Integer
from elmokit.text.normalization import Normalization, normalize
from elmokit.text.tokenizers.protocol import Tokenizer
from elmokit.text.tokenizers.registry import (
    build_tokenizer,
    tokenizer_for_model,
    tokenizer_metadata,
)
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.stored_bilm import LoadedBiLM, read_bilm

BATCH_TOKENS, BATCH_SENTENCES = 8192, 1024
"""Most positions and sentences computed together; a longer sentence goes alone."""
BUFFER_TOKENS = 100_000
"""Positions sorted together; fewer if many likeliest words are named at each."""
UnknownWords = Literal["auto", "spelled", "unk"]
"""What a word outside the vocabulary is scored as: ``<UNK>`` with its spelling, or ``<UNK>`` alone.
``auto``: with its spelling if the model knows how such words are spelled."""
ScoringPrecision = Literal["auto", "fp32", "bf16"]


@dataclass(frozen=True)
class ScoredSentences:
    """Consecutive sentences of a text, and what each direction makes of their N targets.

    Targets are numbered from sentence to sentence: the words, then the sentence end, which is
    ``</S>`` for the forward model and ``<S>`` for the backward model.
    """

    tokens: DistinctTokens
    is_unknown: Bool[np.ndarray, " U"]
    """Of the distinct words: whether they are predicted as ``<UNK>``."""
    nats: dict[Direction, Float[np.ndarray, " N"]]
    """−ln p of every target; of ``<UNK>`` for unknown words."""
    spelling: Float[np.ndarray, " N"]
    """−ln p(spelling | unknown) of unknown words, in both directions the same; 0 for all other
    targets, and for all if spellings are not scored."""
    distributions: dict[Direction, DistributionTable]


class _Sequence(NamedTuple):
    """What a direction reads of a sentence, and what it predicts."""

    inputs: np.ndarray
    """Rows of the distinct words."""
    targets: np.ndarray
    """Word ids."""
    rows: np.ndarray
    """The targets' rows among those of all sentences."""


class TextScorer:
    """Score sentences with a frozen biLM, which must not change meanwhile.

    ``state``, ``precision`` and ``unknown`` are as for `elmokit.perplexity`. With ``top``, the
    distributions are measured, too, and so many of the likeliest words named; ``hashed`` is for
    `metadata`. ``device`` is by default that of the model.
    """

    def __init__(
        self,
        model: LoadedBiLM,
        *,
        batch_size: int = BATCH_SENTENCES,
        state: StartState | str = "warm",
        precision: ScoringPrecision | str = "auto",
        top: int | None = None,
        hashed: bool = False,
        unknown: UnknownWords | str = "auto",
        device: str | None = None,
    ) -> None:
        model = model.stored()
        device = model.device if device is None else device
        self.vocab = scoring_vocab(model)
        check_choice(state, StartState, name="state")
        check_choice(precision, ScoringPrecision, name="precision")
        check_choice(unknown, UnknownWords, name="unknown")
        if unknown == "spelled" and model.spelling is None:
            raise InputError(
                "This model has no spelling.safetensors to spell unknown words by. `elmokit "
                "finetune MODEL CORPUS` learns it; --unknown unk scores them as <UNK>."
            )
        self.spelling = None if unknown == "unk" else model.spelling
        if batch_size < 1:
            raise InputError(f"`batch_size` must be at least 1, got {batch_size}.")
        is_bf16 = precision == "bf16" or (precision == "auto" and has_quick_bf16(device))
        self.precision: Literal["fp32", "bf16"] = "bf16" if is_bf16 else "fp32"
        self.state = state
        self.bilm = FrozenBiLM(model, precision=self.precision, device=device)
        self._metadata = None
        if hashed:
            self._metadata = model.metadata() | {
                "state": state, "precision": self.precision,
                "unknown": "unk" if self.spelling is None else "spelled",
            }  # fmt: skip
            if self.spelling is not None:
                self._metadata["spelling_hash"] = self.spelling.sha256
        self.scores = TargetScores(model, precision=self.precision, device=device)
        self._set_top(top)
        self._batch_size = batch_size
        self.form: Normalization = model.config.char_vocab.normalization
        self.start = LSTMState.zeros(model.config.lstm, 1)
        if state == "warm":
            text = warm_text(model.warm_text)
            self.start = warm_state(self.bilm, text)
            if self._metadata is not None:
                self._metadata |= warm_metadata(text)

    def metadata(self, *, tokenizer: Tokenizer | None = None) -> dict[str, Any]:
        """Return how scores are made; ``tokenizer`` splits the text, if not the model's own."""
        assert self._metadata is not None
        used = {} if tokenizer is None else {"tokenizer": tokenizer_metadata(tokenizer)}
        return self._metadata | used

    def naming(self, top: int) -> "TextScorer":
        """Return a scorer that shares everything with this one, but names ``top`` words."""
        other = copy(self)
        other._set_top(top)
        return other

    def _set_top(self, top: int | None) -> None:
        self.check_top(top or 0)
        self._top = top

    def check_top(self, top: int) -> None:
        """Raise `InputError` unless the model has so many words."""
        if not 0 <= top <= self.scores.num_words:
            raise InputError(f"`top` must be 0 to {self.scores.num_words} words, got {top}.")

    def score(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        on_sentences: Callable[[int], None] = lambda done: None,
    ) -> Iterator[ScoredSentences]:
        """Yield the sentences in their order, many at a time, without empty ones."""
        done = 0
        normalized = (
            [normalize(word, self.form) for word in words] for words in sentences if words
        )
        # likeliest words take most of the memory of a target
        max_tokens = BUFFER_TOKENS // max(1, self._top or 0)
        for buffer in fill_buffers(normalized, max_tokens=max_tokens):
            vectors, tokens = self.bilm.encode(buffer)
            word_ids = self.vocab.encode(tokens.words)
            scored = self._unscored(tokens, word_ids == self.vocab.unknown_id)
            for direction in get_args(Direction):
                sequences = _sequences(direction, tokens, word_ids)
                # neighbors in the order of what is read have most contexts in common
                sequences.sort(key=lambda sequence: sequence.inputs.tolist())
                lengths = [len(sequence.inputs) + 1 for sequence in sequences]
                for numbers in cut_batches(
                    range(len(sequences)), lengths,
                    max_tokens=BATCH_TOKENS, max_sentences=self._batch_size,
                ):  # fmt: skip
                    self._read(direction, vectors, [sequences[i] for i in numbers], scored)
                    done += len(numbers) / 2
                    on_sentences(int(done))
            yield scored

    def _unscored(self, tokens: DistinctTokens, is_unknown: np.ndarray) -> ScoredSentences:
        """Return sentences with room for the figures of their targets."""
        num_targets = sum(len(sentence) - 1 for sentence in tokens.sentences)
        directions = get_args(Direction)
        tables = {}
        if self._top is not None:
            tables = {way: DistributionTable.empty(num_targets, self._top) for way in directions}
        return ScoredSentences(
            tokens=tokens,
            is_unknown=is_unknown,
            nats={way: np.empty(num_targets, np.float32) for way in directions},
            spelling=self._spelled(tokens, is_unknown),
            distributions=tables,
        )

    def _spelled(
        self, tokens: DistinctTokens, is_unknown: Bool[np.ndarray, " U"]
    ) -> Float[np.ndarray, " N"]:
        nats, words = np.zeros(len(tokens.words)), tokens.words
        # not <UNK> itself, which is in the vocabulary, nor words that normalization leaves empty
        unknown = ((row, words[row]) for row in np.flatnonzero(is_unknown))
        rows = [row for row, word in unknown if word and word not in self.vocab]
        if self.spelling is not None and rows:
            nats[rows] = self.spelling.nats([words[row] for row in rows], self.vocab)
        targets = [nats[sentence[1:]] for sentence in tokens.sentences]
        return np.concatenate(targets) if targets else np.zeros(0)

    def _read(
        self,
        direction: Direction,
        vectors: Float[np.ndarray, "U D"],
        batch: Sequence[_Sequence],
        scored: ScoredSentences,
    ) -> None:
        contexts = find_contexts([sequence.inputs for sequence in batch])
        ids = np.concatenate([sequence.targets for sequence in batch])
        rows = np.concatenate([sequence.rows for sequence in batch])
        # each word that follows a context is scored once
        base = self.scores.num_words + 1
        keys, which = np.unique(contexts.numbers * base + ids, return_inverse=True)
        owners, target_ids = np.divmod(keys, base)
        num_targets = np.bincount(owners)
        first = np.cumsum(num_targets) - num_targets
        nats = np.empty(len(keys), np.float32)
        table = None if self._top is None else DistributionTable.empty(len(keys), self._top)

        def score(outputs: np.ndarray, numbers: np.ndarray) -> None:
            counts = num_targets[numbers]
            at = np.repeat(first[numbers], counts) + _counted(counts)
            row = np.repeat(np.arange(len(numbers)), counts)
            if table is None:
                nats[at] = self.scores.nll(outputs, target_ids[at], row)
            else:
                nats[at] = self.scores.describe(outputs[row], target_ids[at], at, into=table)

        start = self.start.direction(direction)
        read_contexts(self.bilm.engine, direction, vectors, contexts, start, score)
        scored.nats[direction][rows] = nats[which]
        if table is not None:
            for field in fields(table):
                values = getattr(scored.distributions[direction], field.name)
                values[rows] = getattr(table, field.name)[which]


def _sequences(
    direction: Direction, tokens: DistinctTokens, word_ids: Integer[np.ndarray, " U"]
) -> list[_Sequence]:
    """Return what is read and predicted: of both boundaries one is read, the other is a target."""
    step = 1 if direction == "forward" else -1
    sequences, first = [], 0
    for sentence in tokens.sentences:
        size, read = len(sentence) - 1, sentence[::step]
        places = np.arange(size)
        # backward the first target is the last word, and the last one, <S>, is the end
        rows = first + (places if step == 1 else (size - 2 - places) % size)
        sequences.append(_Sequence(read[:-1], word_ids[read[1:]], rows))
        first += size
    return sequences


def _counted(counts: np.ndarray) -> np.ndarray:
    """Return 0, 1, … for each count, on end."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def open_scorer(
    model_path: str, *, tokenizer: str | None = None, device: str = "auto", **options: Any
) -> tuple[TextScorer, Tokenizer]:
    """Load a model to score raw text, and its tokenizer; warn if another one is named.

    ``options`` are those of `TextScorer`.
    """
    model = read_bilm(model_path)
    scorer = TextScorer(model, hashed=True, device=find_device(device), **options)
    return scorer, build_tokenizer(tokenizer_for_model(model.tokenizer, tokenizer))


def scoring_vocab(model: LoadedBiLM) -> WordVocab:
    if model.num_target_words is None:
        raise InputError(
            "This model has no softmax over words, so it has no perplexity. Train one with "
            "`elmokit finetune MODEL CORPUS --vocab VOCAB -o DIR`, or convert it with `elmokit "
            "convert … --softmax FILE --vocab VOCAB`."
        )
    if model.word_vocab is None:
        raise InputError(
            f"This model has a softmax over {model.num_target_words} words, but no vocabulary for "
            "it: put its vocab.txt into the model directory."
        )
    return model.word_vocab
