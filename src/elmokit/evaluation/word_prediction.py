"""The words that a biLM expects at a position: next, before, or in a gap from both sides."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import get_args

import numpy as np

from elmokit.bilm.config import Direction
from elmokit.errors import InputError, counted
from elmokit.evaluation.surprisal import WordProbability
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.inference.frozen_bilm import inputs_of
from elmokit.inference.layers_and_states import StartState
from elmokit.inference.target_scores import likeliest, log_softmax
from elmokit.shapes import Float
from elmokit.text.given_sentences import GivenSentence, split_sentence
from elmokit.text.normalization import normalize
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.stored_bilm import LoadedBiLM, open_bilm


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictedWords:
    """A distribution over the vocabulary."""

    entropy: float
    """In bits."""
    rank: int | None
    """1 + the number of words likelier than the hidden one; none if no word is hidden."""
    probability: float | None
    """Of that word; of ``<UNK>`` if it is unknown."""
    top: tuple[WordProbability, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class WordPrediction:
    """What both directions, and both together, expect at a position of a sentence."""

    words: tuple[str, ...]
    """The sentence as the model reads it."""
    index: int
    insert: bool
    word: str | None
    """The hidden word, which neither direction has read; none for an insertion."""
    is_unknown: bool | None
    forward: PredictedWords
    """From the words before."""
    backward: PredictedWords
    """From the words after."""
    both: PredictedWords
    """Proportional to p(word | before) p(word | after) / p(word), as if both sides were
    independent given the word. p(word) is estimated from its rank in the vocabulary, as in the
    sampled softmax."""


def predict_word(
    model: LoadedBiLM | str | PathLike[str],
    sentence: GivenSentence,
    *,
    index: int | None = None,
    insert: bool = False,
    top: int = 10,
    state: StartState | str = "warm",
) -> WordPrediction:
    """Return what a model expects in place of a word, which it does not see, or between words.

    Args:
        model: With vocabulary and softmax; or its directory or name.
        sentence: A string, which the model's tokenizer splits, or a list of words.
        index: In place of this word; default: the next word, after the last one. ``backward`` and
            ``both`` then take the sentence to end after it.
        insert: Before the word ``index`` instead: with 0 the word before the sentence.
        top: Likeliest words to name.
        state: Start of the sentence, as for `elmokit.surprisal`.

    Raises:
        InputError: for a position outside the sentence, an unknown option, or a model without
            vocabulary or softmax.
    """
    model = open_bilm(model)
    scorer = TextScorer(model, state=state, precision="fp32")
    words = split_sentence(sentence, model.tokenize, where="`sentence`")
    return predict_of_words(scorer, words, index=index, insert=insert, top=top)


def predict_of_words(
    scorer: TextScorer,
    sentence: Sequence[str],
    *,
    index: int | None = None,
    insert: bool = False,
    top: int = 10,
) -> WordPrediction:
    """As `predict_word`, with a scorer in fp32 that was made before."""
    vocab = scorer.vocab
    scorer.check_top(top)
    words = [normalize(word, scorer.form) for word in sentence]
    if index is None:
        index, insert = len(words), True
    if not 0 <= index < len(words) + insert:
        places = f"{counted(len(words), 'word')} (an insertion may be at {len(words)})"
        raise InputError(f"There is no place {index} in a sentence of {places}.")
    following = index if insert else index + 1
    before, after = _expected(scorer, words[:index], words[following:])
    # Zipf's law, as the sampled softmax draws words: but for a constant, ln P(word)
    ranks = np.arange(1, len(before) + 1)
    frequency = np.log(np.log1p(1 / ranks)).astype(np.float32)
    joined = log_softmax(before + after - frequency)
    word = None if insert else words[index]
    # Row k of the softmax is the word with id k + 1.
    row = None if word is None else vocab.word_id(word) - 1
    forward, backward, both = (
        _described(log_probs, row, vocab, top) for log_probs in (before, after, joined)
    )
    return WordPrediction(
        words=tuple(words), index=index, insert=insert, word=word,
        is_unknown=None if word is None else vocab.word_id(word) == vocab.unknown_id,
        forward=forward, backward=backward, both=both,
    )  # fmt: skip


def _expected(
    scorer: TextScorer, before: Sequence[str], after: Sequence[str]
) -> list[Float[np.ndarray, " V"]]:
    bilm = scorer.bilm
    vectors, tokens = bilm.encode([before, after])
    expected = []
    for direction, sentence in zip(get_args(Direction), tokens.sentences, strict=True):
        read = inputs_of(direction, sentence)
        tops: list[np.ndarray] = []
        bilm.engine.read(
            direction, vectors, [read], scorer.start.direction(direction),
            on_top=lambda outputs, sentence, position, tops=tops: tops.append(outputs[-1:].copy()),
        )  # fmt: skip
        expected.append(scorer.scores.log_probs(tops[-1])[0])
    return expected


def _described(
    log_probs: Float[np.ndarray, " V"], row: int | None, vocab: WordVocab, top: int
) -> PredictedWords:
    probs = np.exp(log_probs)
    return PredictedWords(
        entropy=-float((probs * log_probs).sum()) / math.log(2),
        rank=None if row is None else 1 + int((log_probs > log_probs[row]).sum()),
        probability=None if row is None else float(probs[row]),
        top=tuple(
            WordProbability(vocab.words[i], float(probs[i]))
            for i in likeliest(log_probs[None], top)[0]
        ),
    )
