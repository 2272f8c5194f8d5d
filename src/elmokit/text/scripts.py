"""The scripts of words: Latin, Hangul, Han and so on."""

import unicodedata
from functools import cache


def script_of(word: str) -> str:
    """Return the script of a word's first letter, as Unicode names its letters; "" without one."""
    return next((_script_of_letter(char) for char in word if char.isalpha()), "")


@cache
def _script_of_letter(letter: str) -> str:
    first, *others = unicodedata.name(letter, "").split(" ")
    name = others[0] if first in ("FULLWIDTH", "HALFWIDTH") and others else first
    return "Han" if name == "CJK" else name.capitalize()


def has_letter(word: str) -> bool:
    return any(map(str.isalpha, word))
