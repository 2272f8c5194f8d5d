import json
import re
import shutil
import subprocess

import pytest

from elmokit.web.page.text_rules import to_javascript

RUN = """const [patterns, texts] = JSON.parse(require("fs").readFileSync(0, "utf-8"));
console.log(JSON.stringify(patterns.map((source) => texts.map((text) =>
  Array.from(text.matchAll(new RegExp(source, "gv")), (match) => match[0])))));"""
PATTERNS = [
    (r"a.c", 0), (r"a(?s:.)c", 0), (r"a\sb|\S\d{2,}", 0), (r"(?P<run>[-=])(?P=run)+", 0),
    (" a # comment\n b{2,} ", re.VERBOSE), (r"[^\W\d_]+", 0), (r"(?<!\w)-(?=\d)|(?<=\d)%(?!%)", 0),
    (r"(?i:[k-ms]i)|k", 0), (r"ſtop|ki", re.IGNORECASE), (r"[\U0001f3fb\]\\^-]|😀?", 0),
    (r"^a|c$", 0), (r"[^\s()\[\]{}|&/]+", 0), (r"(?:a|bc|b)*c", 0), (r"[\S]\W", 0),
]  # fmt: skip
TEXTS = [
    "abc a\nc a\u2028c a\rc", "a\x1cb a\u200bb ٣٤٥ x12", "-- == -=", "abbbb a bb", "añ1_²Ⅷ三",
    "-1 x-1 5% 5%%", "KI ſI \u212aI İı k K", "STOP ſtop kİ", "\U0001f3fb]\\^-😀", "", "({a|b}&&/c)",
]  # fmt: skip


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_translated_pattern_finds_what_python_finds():
    patterns = [re.compile(source, flags) for source, flags in PATTERNS]
    given = json.dumps([[to_javascript(pattern) for pattern in patterns], TEXTS])
    done = subprocess.run(
        ["node", "-e", RUN], input=given, capture_output=True, text=True, check=True
    )
    expected = [[[m[0] for m in pattern.finditer(text)] for text in TEXTS] for pattern in patterns]
    for pattern, found, matches in zip(PATTERNS, json.loads(done.stdout), expected, strict=True):
        assert found == matches, pattern


@pytest.mark.parametrize("pattern", [r"\bx", "a++", "(?>a)", r"(a)\1", "a*?"])
def test_what_the_rules_do_not_use_is_refused(pattern):
    with pytest.raises(ValueError, match="no JavaScript"):
        to_javascript(re.compile(pattern))
