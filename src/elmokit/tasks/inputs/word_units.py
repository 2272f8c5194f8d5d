"""Whether the tokens of a data set are those that raw text will be split into."""

import logging
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from elmokit.tasks.task import Task, Units
from elmokit.text.tokenizers.protocol import Tokenizer

log = logging.getLogger(__name__)

MORPHEME_TOKENIZER = "korean"
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


def warn_of_units(
    path: Path,
    task: Task[Any],
    examples: Iterable[Any],
    units: Units,
    tokenizer: Tokenizer,
    *,
    has_bilm: bool,
) -> None:
    """Say so, once, if raw text will be split into other pieces than the training data.

    Args:
        path: The training data's file.
        task: That it is for.
        examples: Its examples.
        units: What a token of it was said to be.
        tokenizer: Of the biLM, or the one that raw text will go through.
        has_bilm: Whether a biLM reads the words.
    """
    if units == "morphemes":
        if tokenizer.name != MORPHEME_TOKENIZER:
            _warn(
                f"units=morphemes, but the tokenizer {tokenizer.name!r} makes none: raw text will "
                "come to the trained model as whole words. Take a biLM of morphemes, such as "
                "--model ko."
            )
        return
    share = share_split(task.words(examples), tokenizer)
    if share > TOO_MANY_SPLIT:
        unseen = ", and the biLM has not seen such words" if has_bilm else ""
        hint = " (--set units=morphemes reads the morphemes)" if len(task.all_units) > 1 else ""
        _warn(
            f"{path}: {100 * share:.0f} % of the words are split by the tokenizer "
            f"{tokenizer.name!r}: raw text will come to the trained model in other pieces{unseen}. "
            f"Take a biLM whose tokenizer leaves them whole, or data in its units{hint}."
        )


@cache
def _warn(message: str) -> None:
    log.warning("%s", message)
