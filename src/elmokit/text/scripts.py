"""The scripts that words are written in, such as Latin, Hangul and Han."""

import unicodedata
from functools import cache


def script_of(word: str) -> str:
    """Return the script of a word's first letter, as Unicode names its letters; "" without one."""
    return next((_script_of_letter(one) for one in word if one.isalpha()), "")


@cache
def _script_of_letter(letter: str) -> str:
    first, *others = unicodedata.name(letter, "").split(" ")
    name = others[0] if first in ("FULLWIDTH", "HALFWIDTH") and others else first
    return "Han" if name == "CJK" else name.capitalize()
