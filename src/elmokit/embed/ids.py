"""Sentences as a tensor of character ids: the input of `elmokit.ELMo`."""

import itertools
import logging
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

import torch
from torch import Tensor

from elmokit.shapes import Int
from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.text.given_sentences import split_sentences
from elmokit.text.normalization import DEFAULT_NORMALIZATION, normalize

log = logging.getLogger(__name__)
_MAX_CACHED_CHARACTERS = 64  # of a word

ORIGINAL_CHAR_VOCAB = CharVocabConfig(max_characters=50, normalization="none", truncation="byte")
"""How the original implementations turn words into characters."""


def batch_to_ids(
    sentences: Iterable[Sequence[str]], *, char_vocab: CharVocab | None = None
) -> Int[Tensor, "B W C"]:
    """Encode tokenized sentences as character ids, without sentence boundaries.

    By default equal to AllenNLP's function: 50 characters, no Unicode normalization, long words cut
    at byte 48. This suits imported original weights; for a model trained with elmokit use
    `ELMo.encode`, or pass ``char_vocab=model.char_vocab``; a warning says so, once, if words would
    be read in another form. Rows are padded with 0 to the longest sentence.

    Raises:
        TypeError: for a string: without a model there is no tokenizer. ``model.encode(sentences,
            boundaries=False)`` splits strings.
    """
    words = list(split_sentences(sentences, None))
    if char_vocab is None and any(map(_is_changed, itertools.chain.from_iterable(words))):
        _warn()
    vocab = CharVocab(ORIGINAL_CHAR_VOCAB) if char_vocab is None else char_vocab
    return torch.from_numpy(vocab.encode(words, boundaries=False))


def _is_changed(word: str) -> bool:
    """Return whether models trained with elmokit read another form of a word."""
    form = (
        _known_form if len(word) <= _MAX_CACHED_CHARACTERS else _form
    )  # long words would fill the memory
    return form(word) != word


def _form(word: str) -> str:
    return normalize(word, DEFAULT_NORMALIZATION)


_known_form = lru_cache(10_000)(_form)


@cache
def _warn() -> None:
    log.warning(
        "batch_to_ids does not normalize words (curly quotes, decomposed characters, -LRB- …), as "
        "is right for original weights; for models trained with elmokit use elmo.encode(sentences)"
    )
