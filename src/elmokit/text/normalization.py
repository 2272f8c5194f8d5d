"""Text normalization by named profiles, which are stored with a model.

`normalize` is applied to lines of raw text, words given by users, and targets of the language
model. A profile never changes: new rules get a new name, so that a stored model keeps reading text
as in its training.

- ``none``: no change, as in the original code.
- ``NFC``: Unicode composition (decomposed Hangul has nearly three times the bytes).
- ``plain-1``, the default of new models: NFC, and plain signs for typographic and treebank ones:

  - Soft hyphens, byte order marks, word joiners, direction marks and other zero-width characters
    are dropped. Joiners and zero-width spaces (U+200B to U+200D) stay between two characters of a
    script that spells with them (Arabic to Khmer, emoji).
  - Full-width and half-width forms (U+FF01 to U+FFEE) become the ordinary characters.
  - Double quotes (U+201C to U+201F) become ``"``; single ones (U+2018 to U+201B) and the acute
    accent become ``'``; the ellipsis becomes three full stops.
  - Hyphens, figure dash, en dash and minus become ``-``; em dash and horizontal bar become ``--``,
    as in treebanks: a hyphen joins words and numbers, a dash parts clauses.
  - Penn Treebank: two backticks or two apostrophes become ``"``, a backtick becomes ``'``;
    ``-LRB-`` ``-RRB-`` ``-LSB-`` ``-RSB-`` ``-LCB-`` ``-RCB-``, in either case, become brackets;
    slash and star lose the backslash before them.

  Guillemets, primes, CJK quotes, ligatures and letters that look like apostrophes stay. A word of
  dropped characters alone becomes the empty word.
"""

import functools
import re
import unicodedata
from itertools import chain, compress, groupby, pairwise
from types import SimpleNamespace
from typing import Literal

Normalization = Literal["none", "NFC", "plain-1"]
DEFAULT_NORMALIZATION: Normalization = "plain-1"


def normalize(text: str, form: Normalization) -> str:
    """Normalize a line or a word (idempotent)."""
    if form == "none":
        return text
    if form == "NFC":
        return text if text.isascii() else _compose(text)
    plain = _plain(text)
    while plain != text and not plain.isascii():  # dropping may form new patterns
        text, plain = plain, _plain(plain)
    return plain


def normalized_tokens(tokens: list[str], form: Normalization) -> list[str]:
    """Normalize the tokens of normalized text: a tokenizer may rewrite some, such as to ``''``."""
    if form == "none":
        return tokens
    joined = " ".join(tokens)
    if normalize(joined, form) == joined:
        return tokens
    return [found for token in tokens if (found := normalize(token, form))]


def _plain(text: str) -> str:
    if not text.isascii():
        text = _compose(text)
        text = _TYPOGRAPHIC.sub(lambda match: _PLAIN_SIGNS[match.group()], text)
        if "\u200b" in text or "\u200c" in text or "\u200d" in text:
            text = _JOINERS_ELSEWHERE.sub("", text)
    # Few texts have these signs, and looking for them is quicker than a pattern.
    if "`" in text or "''" in text:
        text = _TWO_QUOTES.sub('"', text.replace("`", "'"))
    if "B-" in text or "b-" in text:
        text = _BRACKET.sub(lambda match: TREEBANK_BRACKETS[match.group().upper()], text)
    return _ESCAPE.sub("", text) if "\\" in text else text


def _compose(text: str) -> str:
    """Return the NFC of a text in time that grows with its length.

    `unicodedata` puts marks in order by insertion, so 480,000 marks after one letter take minutes.
    Long runs of marks are therefore sorted first, into the order that NFC prescribes.
    """
    # a long run has one of the characters at every so many places
    if len(text) > _LONG_TEXT and not _MARKS.isdisjoint(_kinds(text[::_LONG_RUN])):
        text = re.sub(f"[{combining_marks()}]{{{_LONG_RUN},}}", _in_order, text)
    return unicodedata.normalize("NFC", text)


def _in_order(run: re.Match[str]) -> str:
    marks = "".join(unicodedata.normalize("NFD", mark) for mark in run.group())
    # those of class 0 stay where they are, and the others between them
    groups = groupby(marks, key=lambda mark: unicodedata.combining(mark) > 0)
    return "".join(chain.from_iterable(sorted(g, key=unicodedata.combining) for _, g in groups))


@functools.cache
def combining_marks() -> str:
    """Return all combining marks as ranges, for the character classes of patterns."""
    # no marks: ideographs, syllables, surrogates and private use, tags
    parts = ((0x300, 0x3400), (0xA4D0, 0xAC00), (0xF900, 0x17000), (0x18D00, 0x20000))
    codes = [*chain(*(range(*part) for part in parts)), *range(0xE0100, 0xE01F0)]
    is_mark = map(_MARKS.__contains__, _kinds(map(chr, codes)))
    marks = list(compress(codes, is_mark))
    starts = [a for before, a in pairwise((0, *marks)) if a != before + 1]
    ends = [a for a, after in pairwise((*marks, 0)) if after != a + 1]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(starts, ends, strict=True))


_kinds = functools.partial(map, unicodedata.category)
_MARKS = frozenset(["Mn", "Mc", "Me"])
_LONG_TEXT = 1000
"""Characters; shorter texts are in order in a millisecond, however their marks stand."""
_LONG_RUN = 31
"""Marks; no writing system puts as many on a letter."""
_NO_WIDTH = (
    "\u00ad\u034f\u061c\u180e\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063"
    "\u2064\u2066\u2067\u2068\u2069\u206a\u206b\u206c\u206d\u206e\u206f\ufeff"
)
_WITH_JOINERS = (
    "[\u0600-\u109f\u1780-\u18af\u2190-\u2bff\ua840-\ua9df\uaa00-\uaaff\ufb50-\ufdff\ufe0f"
    "\ufe70-\ufefc\U0001f000-\U0001faff\U000e0020-\U000e007f]"
)
KEPT_JOINER = f"(?<={_WITH_JOINERS})[\u200b-\u200d](?={_WITH_JOINERS})"
"""Pattern of a joiner that ``plain-1`` keeps."""
_JOINERS_ELSEWHERE = re.compile(
    f"(?<!{_WITH_JOINERS})[\u200b-\u200d]+|[\u200b-\u200d]+(?!{_WITH_JOINERS})"
)


def _plain_signs() -> dict[str, str]:
    signs = dict.fromkeys(_NO_WIDTH, "")
    for char in map(chr, range(0xFF01, 0xFFEF)):
        kind, _, code = unicodedata.decomposition(char).partition(" ")
        if kind in ("<wide>", "<narrow>"):
            signs[char] = chr(int(code, 16))
    for plain, chars in (
        ('"', "“”„‟"), ("'", "‘’‚‛´"), ("...", "…"), ("-", "‐‑‒–−"), ("--", "—―"),
    ):  # fmt: skip
        signs |= dict.fromkeys(chars, plain)
    return signs


_PLAIN_SIGNS = _plain_signs()
_TYPOGRAPHIC = re.compile(f"[{''.join(_PLAIN_SIGNS)}]")
_TWO_QUOTES = re.compile("(?<!')''(?!')")
TREEBANK_BRACKETS = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
}  # fmt: skip
_BRACKET = re.compile(r"(?<!\w)-[LR][RSC]B-(?!\w)", re.IGNORECASE)
_ESCAPE = re.compile(r"(?<!\\)\\+(?=[/*])")


def plain_1_rules() -> SimpleNamespace:
    """Return the signs and patterns of ``plain-1``, for a version in another language."""
    return SimpleNamespace(
        signs=_PLAIN_SIGNS,
        joiners=_JOINERS_ELSEWHERE,
        two_quotes=_TWO_QUOTES,
        bracket=_BRACKET,
        brackets=TREEBANK_BRACKETS,
        escape=_ESCAPE,
    )
