r"""The rules of the tokenizer ``simple``, of normalization and alignment, for the page.

They are written once, in Python. Their regular expressions are translated into JavaScript's syntax
(flag ``v``), in which ``\w``, ``\d``, ``\s`` and ignoring case mean other characters: the
translation names the characters that Python means.
"""

import re
from collections.abc import Sequence
from re import _parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any

from elmokit.text.alignment import MAX_ALTERED, cluster_pattern
from elmokit.text.normalization import plain_1_rules
from elmokit.text.tokenizers import simple_data
from elmokit.text.tokenizers.simple import patterns

RULES_NAME = "tokenizer-rules.json"

_SPACES = "\x09-\x0d\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What `str.isspace` is true of, as the inside of a class."""
_CATEGORIES = {
    "CATEGORY_WORD": r"\p{L}\p{N}_",
    "CATEGORY_NOT_WORD": r"[^\p{L}\p{N}_]",
    "CATEGORY_DIGIT": r"\p{Nd}",
    "CATEGORY_SPACE": _SPACES,
    "CATEGORY_NOT_SPACE": f"[^{_SPACES}]",
}
_OTHER_CASES = {"i": "İı", "s": "ſ", "k": "\u212a"}
"""What Python takes for a letter in another case, besides its lower and upper case."""
_AROUND = {
    ("ASSERT", 1): "=",
    ("ASSERT", -1): "<=",
    ("ASSERT_NOT", 1): "!",
    ("ASSERT_NOT", -1): "<!",
}


def text_rules() -> dict[str, Any]:
    """Return the word lists, and the patterns in JavaScript's syntax."""
    plain = vars(plain_1_rules())
    return {
        "spaces": f"[{_SPACES}]",
        "normalization": {
            name: to_javascript(rule) if isinstance(rule, re.Pattern) else dict(rule)
            for name, rule in plain.items()
        },
        "simple": {
            "patterns": {
                name: to_javascript(pattern) for name, pattern in patterns()._asdict().items()
            },
            "titles": sorted(simple_data.TITLES),
            "references": sorted(simple_data.REFERENCES),
            "abbreviations": sorted(simple_data.ABBREVIATIONS),
            "contractions": simple_data.CONTRACTIONS,
            "closers": simple_data.CLOSERS,
        },
        "alignment": {"cluster": to_javascript(cluster_pattern()), "max_altered": MAX_ALTERED},
    }


def to_javascript(pattern: re.Pattern[str]) -> str:
    """Return the source of ``new RegExp(source, "v")`` that matches the same.

    Python's own parser reads the pattern.

    Raises:
        ValueError: for syntax that these rules do not use.
    """
    names = {number: name for name, number in pattern.groupindex.items()}
    return _joined(_parser.parse(pattern.pattern, pattern.flags), pattern.flags, names)


def _joined(parts: Any, flags: int, names: dict[int, str]) -> str:
    return "".join(_translated(str(kind), value, flags, names) for kind, value in parts)


def _translated(kind: str, value: Any, flags: int, names: dict[int, str]) -> str:
    """Return a part of a parsed pattern; what its value holds depends on its kind."""
    if kind == "LITERAL" and not flags & re.IGNORECASE:
        return _character(value)
    if kind == "LITERAL":
        return _class([("LITERAL", value)], flags)
    if kind == "IN":
        return _class([(str(member), content) for member, content in value], flags)
    if kind == "ANY":
        return r"[\s\S]" if flags & re.DOTALL else r"[^\n]"
    if kind == "AT" and str(value) in ("AT_BEGINNING", "AT_END"):
        return "^" if str(value) == "AT_BEGINNING" else "$"
    if kind == "BRANCH":
        return f"(?:{'|'.join(_joined(way, flags, names) for way in value[1])})"
    if kind == "SUBPATTERN":
        number, added, removed, parts = value
        inside = _joined(parts, flags & ~removed | added, names)
        return f"(?<{names[number]}>{inside})" if number in names else f"(?:{inside})"
    if kind == "GROUPREF" and value in names:
        return rf"\k<{names[value]}>"
    if kind == "MAX_REPEAT":
        least, most, parts = value
        bound = "" if most is _parser.MAXREPEAT else most
        return f"(?:{_joined(parts, flags, names)}){{{least},{bound}}}"
    if kind in ("ASSERT", "ASSERT_NOT"):
        direction, parts = value
        return f"(?{_AROUND[kind, direction]}{_joined(parts, flags, names)})"
    raise ValueError(f"no JavaScript is known for {kind} {value!r:.60}")


def _class(members: Sequence[tuple[str, Any]], flags: int) -> str:
    negated, named, ranges = "", "", list[tuple[int, int]]()
    for kind, value in members:
        if kind == "NEGATE":
            negated = "^"
        elif kind == "CATEGORY":
            named += _CATEGORIES[str(value)]
        else:
            ranges.append(value if kind == "RANGE" else (value, value))
    if flags & re.IGNORECASE:
        ranges += [(ord(char), ord(char)) for char in _other_cases(ranges)]
    shown = named + "".join(_shown(low, high) for low, high in _merged(ranges))
    return f"[{negated}{shown}]"


def _other_cases(ranges: list[tuple[int, int]]) -> set[str]:
    chars = {chr(code) for low, high in ranges for code in range(low, high + 1)}
    cased = {case for char in chars for case in (char.lower(), char.upper()) if len(case) == 1}
    return (cased | {other for char in cased for other in _OTHER_CASES.get(char, "")}) - chars


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    # the combining marks are given one by one, and stand in a dozen places
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            low, high = merged[-1][0], max(high, merged.pop()[1])
        merged.append((low, high))
    return merged


def _shown(low: int, high: int) -> str:
    return _character(low) if low == high else f"{_character(low)}-{_character(high)}"


def _character(code: int) -> str:
    # signs by number: which of them a class may hold as they are differs between the languages
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\u{{{code:x}}}"
