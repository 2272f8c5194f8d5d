"""Sentences as a tensor of character ids: the input of `elmokit.ELMo`."""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from elmokit.text.char_vocab import CharVocab, CharVocabConfig

ORIGINAL_CHAR_VOCAB = CharVocabConfig(max_characters=50, normalization="none", truncation="byte")
"""How the original implementations turn words into characters."""


def batch_to_ids(
    sentences: Iterable[Sequence[str]], *, char_vocab: CharVocab | None = None
) -> Int[Tensor, "B W C"]:
    """Encode tokenized sentences as character ids, without sentence boundaries.

    By default equal to AllenNLP's function: 50 characters, no Unicode normalization, long words cut
    at byte 48. This suits imported original weights; for a model trained with elmokit pass
    ``char_vocab=model.char_vocab``. Rows are padded with 0 to the longest sentence.

    Raises:
        TypeError: for a string: without a model there is no tokenizer. ``model.encode(sentences,
            boundaries=False)`` splits strings.
    """
    vocab = CharVocab(ORIGINAL_CHAR_VOCAB) if char_vocab is None else char_vocab
    return torch.from_numpy(vocab.encode(sentences, boundaries=False))
