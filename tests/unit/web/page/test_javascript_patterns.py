import re

import pytest

from elmokit.web.page.javascript_patterns import to_javascript


@pytest.mark.parametrize(
    ("pattern", "flags", "expected"),
    [
        (r"a.c", 0, r"a[^\n]c"),
        (r"(?s:.)x", 0, r"(?:[\s\S])x"),
        (r"(?P<run>[-=])(?P=run)+", 0, r"(?<run>[\u{2d}\u{3d}])\k<run>+"),
        (r" a # comment" + "\n b{2,}", re.VERBOSE, "ab{2,}"),
        (r"[^\W\d_]", 0, r"[^[^\p{L}\p{N}_]\p{Nd}\u{5f}]"),
        (r"(?<!\w)-", 0, r"(?<![\p{L}\p{N}_])\u{2d}"),
        (r"(?i:k)k", 0, "(?:[Kk\\u{212a}])k"),
        (r"\U0001f3fb", 0, r"\u{1f3fb}"),
        ("[abcx-z]", 0, "[a-cx-z]"),
    ],
)
def test_syntax_is_translated(pattern, flags, expected):
    assert to_javascript(re.compile(pattern, flags)) == expected


@pytest.mark.parametrize("pattern", [r"\bx", "a++", "(?>a)", r"(a)\1"])
def test_what_is_not_known_is_refused(pattern):
    with pytest.raises(ValueError, match="no JavaScript"):
        to_javascript(re.compile(pattern))


def test_unknown_flags_are_refused():
    with pytest.raises(ValueError, match="flags"):
        to_javascript(re.compile("a", re.MULTILINE))
