"""Whether the words of a data set are the units that a biLM was trained on."""

import logging
from collections.abc import Iterable
from pathlib import Path

from elmokit.text.tokenizers import Tokenizer

log = logging.getLogger(__name__)

NUM_LOOKED_AT = 1000
"""Distinct words that are tried."""
TOO_MANY_SPLIT = 0.4
"""Share of them from which the data have other units. Tokenizers disagree about some words (English
treebank 0.01, morphemes of Korean data 0.2), but split nearly all eojeol (0.8)."""


def share_split(words: Iterable[str], tokenizer: Tokenizer) -> float:
    """Return the share of distinct words that a tokenizer does not leave whole."""
    distinct: dict[str, None] = {}
    for word in words:
        distinct[word] = None
        if len(distinct) == NUM_LOOKED_AT:
            break
    split = sum(len(tokenizer.tokenize(word)) > 1 for word in distinct)
    return split / max(1, len(distinct))


def warn_of_units(path: Path, words: Iterable[str], tokenizer: Tokenizer) -> None:
    """Say so if the words of a file are not the tokenizer's, with their share."""
    share = share_split(words, tokenizer)
    if share > TOO_MANY_SPLIT:
        log.warning(
            "%s: %.0f %% of the words are split by the biLM's tokenizer (%s): it has not seen such "
            "words, and raw text will come to the trained model in other pieces. Take a biLM whose "
            "tokenizer leaves them whole or, of a Korean treebank, the morphemes: "
            "--set units=morphemes.",
            path, 100 * share, tokenizer.name,
        )  # fmt: skip
