"""Check that a data set has the same tokens as the tokenizer makes of raw text."""

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
"""A larger share of split words means other units: English treebank 0.01, Korean morphemes 0.2,
eojeol 0.8."""


def share_split(words: Iterable[str], tokenizer: Tokenizer) -> float:
    """Return the share of (the first) distinct words that a tokenizer splits."""
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
    """Warn, once, if raw text will be split into other pieces than the training data of ``path``.

    ``tokenizer`` is the one for raw text; ``has_bilm`` tells whether a biLM reads the words.
    """
    if units == "morphemes":
        if tokenizer.name != MORPHEME_TOKENIZER:
            _warn(
                f"units=morphemes, but the tokenizer {tokenizer.name!r} makes none: the trained "
                "model will read raw text as whole words. Use a biLM of morphemes, such as "
                "--model ko."
            )
        return
    share = share_split(task.words(examples), tokenizer)
    if share > TOO_MANY_SPLIT:
        unseen = ", and the biLM has not seen such words" if has_bilm else ""
        hint = " (--set units=morphemes reads the morphemes)" if len(task.all_units) > 1 else ""
        _warn(
            f"{path}: {100 * share:.0f} % of the words are split by the tokenizer "
            f"{tokenizer.name!r}: the trained model will read raw text in other pieces{unseen}. "
            f"Use a biLM whose tokenizer leaves them whole, or data in its units{hint}."
        )


@cache
def _warn(message: str) -> None:
    log.warning("%s", message)
