"""Check that a data set has the same tokens as the tokenizer makes of raw text."""

import logging
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path

from elmokit.errors import FormatError
from elmokit.tasks.formats.conllu import read_conllu, read_morphemes
from elmokit.tasks.task import Units
from elmokit.text.tokenizers.protocol import Tokenizer

log = logging.getLogger(__name__)

MORPHEME_TOKENIZER = "korean"
TREEBANK_UNITS: tuple[Units, ...] = ("words", "morphemes")
NUM_LOOKED_AT = 1000  # words, or sentences, that are tried
TOO_MANY_SPLIT = 0.4
"""A larger share of split words means other units: English treebank 0.01, Korean morphemes 0.2,
eojeol 0.8."""


def _share_split(words: Iterable[str], tokenizer: Tokenizer) -> float:
    """Return the share of (the first) distinct words that a tokenizer splits."""
    distinct: set[str] = set()
    for word in words:
        distinct.add(word)
        if len(distinct) == NUM_LOOKED_AT:
            break
    return sum(len(tokenizer.tokenize(word)) > 1 for word in distinct) / max(1, len(distinct))


def usual_units(treebank: Path, tokenizer: Tokenizer) -> Units:
    """Return the units of a CoNLL-U file that are nearer to the tokenizer's."""
    if tokenizer.name != MORPHEME_TOKENIZER:
        return "words"
    try:
        num_morphemes, num_words = (
            sum(len(sentence.tokens) for sentence in islice(read(treebank), NUM_LOOKED_AT))
            for read in (read_morphemes, read_conllu)
        )
    except FormatError as error:
        log.info("%s is read by words: %s", treebank, error)
        return "words"
    return "morphemes" if num_morphemes > num_words else "words"


def warn_of_units(
    path: Path,
    words: Iterable[str],
    units: Units,
    tokenizer: Tokenizer,
    *,
    has_bilm: bool,
    option: str = "",
) -> None:
    """Warn, once, if raw text is split into other pieces than the data of ``path``."""
    if units == "morphemes" and tokenizer.name != MORPHEME_TOKENIZER:
        warn_once(
            f"units=morphemes, but the tokenizer {tokenizer.name!r} makes none: raw text is "
            "read as whole words. Use a biLM of morphemes, such as --model ko."
        )
    # Characters are read as the tokenizer's tokens, so they cannot differ.
    share = _share_split(words, tokenizer) if units == "words" else 0.0
    if share > TOO_MANY_SPLIT:
        unseen = ", and the biLM has not seen such words" if has_bilm else ""
        hint = f" ({option} reads the morphemes)" if option else ""
        warn_once(
            f"{path}: {100 * share:.0f} % of the words are split by the tokenizer "
            f"{tokenizer.name!r}: raw text is read in other pieces{unseen}. "
            f"Use a biLM whose tokenizer leaves them whole, or data in its units{hint}."
        )


@cache
def warn_once(message: str) -> None:
    """Log a warning that this process has not given yet."""
    log.warning("%s", message)
