"""What the built-in tokenizer knows of languages (``data/languages.toml``), and what holds in all.

The fields of `Language` are explained in that file; without a language none of them applies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _capitalized(words: frozenset[str]) -> frozenset[str]:
    # "Inc", "INC", "Ph.D", "PH.D": a letter after a full stop is a capital
    parts = (word.split(".") for word in words)
    first_letters = {".".join(part.capitalize() for part in word) for word in parts}
    return frozenset(first_letters | {word.upper() for word in words})


@dataclass(frozen=True, kw_only=True)
class Language:
    titles: frozenset[str] = frozenset()
    references: frozenset[str] = frozenset()
    abbreviations: frozenset[str] = frozenset()
    starters: frozenset[str] = frozenset()
    has_ordinals: bool = False
    elisions: str = ""
    contractions: Mapping[str, int] = field(default_factory=dict)
    prefixes: frozenset[str] = frozenset()

    @cached_property
    def dotted(self) -> frozenset[str]:
        """Words that a full stop may belong to."""
        return self.titles | self.references | self.abbreviations


LANGUAGES = ("", "en", "de", "fr", "hi", "tr")
"""ISO 639-1 codes; the empty one stands for any other language."""
VERSION = "3"
"""Version of the rules without a language."""


@cache
def language_of(code: str) -> Language:
    import tomllib

    text = files("elmokit").joinpath("data/languages.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = tomllib.loads(text).get(code, {})
    capitalized = table.pop("capitalized", {})
    for name in ("starters", "prefixes"):
        table[name] = _words(table.get(name, ""))
    for name in ("titles", "references", "abbreviations"):
        any_case = _words(table.get(name, ""))
        both = any_case | _words(capitalized.get(name, ""))
        table[name] = any_case | _capitalized(both)
    return Language(**table)


def version_of(language: str) -> str:
    return f"{VERSION}, {language}" if language else VERSION


UNITS = _words(
    "am pm AM PM k K m b km cm mm kg mg mph kb mb gb KB MB GB hz Hz kHz MHz GHz ft lb lbs oz"
)
"""Units split from the number before them."""

CLOSERS = "\"'”’)]}»›」』》〉】）］｝"
"""Quotes and brackets that may follow the end of a sentence."""
OPENERS = "\"'“‘([{«‹「『《〈【（［｛¿¡`*•-–—"
"""Marks that may precede the first word of a sentence."""
STRONG_ENDS = "!?…。！？｡؟।॥‼⁇⁈⁉።"
"""Marks that end a sentence by themselves."""
NEVER_FIRST = ",;:.)]}"
"""No sentence starts with one of these."""
