"""Sentences as a tensor of character ids: the input of `elmokit.ELMo`."""

import logging
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.text.normalization import DEFAULT_NORMALIZATION, normalize

log = logging.getLogger(__name__)

ORIGINAL_CHAR_VOCAB = CharVocabConfig(max_characters=50, normalization="none", truncation="byte")
"""How the original implementations turn words into characters."""
_has_warned = False


def batch_to_ids(
    sentences: Iterable[Sequence[str]], *, char_vocab: CharVocab | None = None
) -> Int[Tensor, "B W C"]:
    """Encode tokenized sentences as character ids, without sentence boundaries.

    By default equal to AllenNLP's function: 50 characters, no Unicode normalization, long words cut
    at byte 48. This suits imported original weights; for a model trained with elmokit use
    `ELMo.encode`, or pass ``char_vocab=model.char_vocab``: a warning names the first word that such
    a model would read in another form. Rows are padded with 0 to the longest sentence.

    Raises:
        TypeError: for a string: without a model there is no tokenizer. ``model.encode(sentences,
            boundaries=False)`` splits strings.
    """
    if char_vocab is None:
        sentences = list(sentences)
        _warn_of_forms(sentences)
    vocab = CharVocab(ORIGINAL_CHAR_VOCAB) if char_vocab is None else char_vocab
    return torch.from_numpy(vocab.encode(sentences, boundaries=False))


def _warn_of_forms(sentences: Iterable[Sequence[str]]) -> None:
    """Warn once in a process of a word that models of elmokit normalize."""
    global _has_warned
    for word in (word for words in sentences for word in words):
        if _has_warned:
            return
        if (form := normalize(word, DEFAULT_NORMALIZATION)) != word:
            _has_warned = True
            log.warning(
                "batch_to_ids encodes %r as it is, like the original software; models trained with "
                "elmokit read it as %r: encode with `elmo.encode(sentences)` for these", word, form,
            )  # fmt: skip
