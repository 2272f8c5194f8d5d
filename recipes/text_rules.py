"""Write the rules by which the explorer's page splits text: ``python recipes/text_rules.py``.

They are those of normalization, of the tokenizer ``simple`` in each version and of alignment, with
patterns in JavaScript's syntax. Run it after any change of these; a test compares.
"""

import re
import string
from pathlib import Path
from typing import Any

from elmokit.files.json_files import json_bytes
from elmokit.text.alignment import MAX_ALTERED, cluster_pattern
from elmokit.text.normalization import combining_marks, plain_1_rules
from elmokit.text.tokenizers.languages import CLOSERS, LANGUAGES, VERSION, version_of
from elmokit.text.tokenizers.simple import rules_of

RULES = Path(__file__).parents[1] / "src/elmokit/web/page/static/tokenizer-rules.json"
VERSIONS = ("1", "2", *map(version_of, LANGUAGES))

_SPACES = r"[\x09-\x0d\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
"""What `str.isspace` is true of."""
_ESCAPES = {
    r"\w": r"[\p{L}\p{N}_]", r"\W": r"[^\p{L}\p{N}_]", r"\d": r"\p{Nd}", r"\p{M}": r"\p{M}",
    r"\s": _SPACES, r"\S": _SPACES.replace("[", "[^"), "(?s:.)": r"[\s\S]", "(?i:": "(?:",
    # V8 takes a negated class inside a negated class for another one
    r"[^\W\d_]": r"[\p{L}\p{Nl}\p{No}]",
}  # fmt: skip
_TOKEN = re.compile(
    r"\[\^\\W\\d_\]|\\p\{M\}|\\U[\da-f]{8}|\\u[\da-f]{4}|\\.|\(\?s:\.\)|\(\?P=\w+\)|\(\?P<\w+>|\(\?(?:i:|:|<?[=!])"
    r"|.",
    re.DOTALL,
)
_OTHER_CASES = {"i": "İı", "s": "ſ", "k": "\u212a"}
"""What Python takes for a letter in another case, besides its lower and upper case."""


def text_rules() -> dict[str, Any]:
    """Return the contents of ``tokenizer-rules.json``; ``newest`` serves unknown versions."""
    plain = vars(plain_1_rules())
    return {
        "spaces": _SPACES,
        "normalization": {
            name: to_javascript(rule) if isinstance(rule, re.Pattern) else dict(rule)
            for name, rule in plain.items()
        },
        "newest": VERSION,
        "simple": {version: _simple_rules(version) for version in VERSIONS},
        "alignment": {"cluster": to_javascript(cluster_pattern()), "max_altered": MAX_ALTERED},
    }


def _simple_rules(version: str) -> dict[str, Any]:
    rules = rules_of(version)
    return {
        "patterns": {
            name: to_javascript(pattern) for name, pattern in rules.patterns._asdict().items()
        },
        "titles": sorted(rules.language.titles),
        "references": sorted(rules.language.references),
        "abbreviations": sorted(rules.language.abbreviations),
        "contractions": dict(sorted(rules.language.contractions.items())),
        "has_ordinals": rules.language.has_ordinals,
        "closers": CLOSERS,
    }


def to_javascript(pattern: re.Pattern[str]) -> str:
    """Return the source of ``new RegExp(source, "v")`` that matches the same.

    It knows what the rules use: neither spaces in classes nor ranges of letters in any case.
    """
    source = pattern.pattern.replace(combining_marks(), r"\p{M}")
    source = re.sub(r"(?<=\[)-|-(?=\])", r"\\-", source)  # a sign at the edge of a class, no range
    if pattern.flags & re.VERBOSE:
        source = re.sub(r"\s+#.*|\s", "", source)
    ignores_case = [bool(pattern.flags & re.IGNORECASE)]  # outside, then in each open group
    in_class, parts = False, list[str]()
    for token in _TOKEN.findall(source):
        parts.append(_translated(token, in_class=in_class, ignores_case=ignores_case[-1]))
        if token in ("[", "]"):
            in_class = token == "["
        elif not in_class and token == ")":
            ignores_case.pop()
        elif not in_class and token[0] == "(" and token[-1] != ")":
            ignores_case.append(ignores_case[-1] or token == "(?i:")
    return "".join(parts)


def _translated(token: str, *, in_class: bool, ignores_case: bool) -> str:
    if token in _ESCAPES:
        return _ESCAPES[token]
    if token.startswith(r"\U"):
        return rf"\u{{{int(token[2:], 16):x}}}"
    if token.startswith("(?P"):
        return token.replace("(?P<", "(?<").replace("(?P=", r"\k<").replace(")", ">")
    if token == "." and not in_class:
        return r"[^\n]"
    if ignores_case and token.isalpha():
        cases = {token.lower(), token.upper(), *_OTHER_CASES.get(token.lower(), "")}
        return "".join(sorted(cases)) if in_class else f"[{''.join(sorted(cases))}]"
    if len(token) == 2 and token[0] == "\\":
        if token[1].isalnum():
            raise ValueError(f"no JavaScript is known for {token!r}")
        return rf"\u{{{ord(token[1]):x}}}"
    # which signs a class may hold as they are differs between the languages
    if in_class and token in string.punctuation and token not in "]^-":
        return rf"\u{{{ord(token):x}}}"
    return token


if __name__ == "__main__":
    RULES.write_bytes(json_bytes(text_rules(), indent=None))
