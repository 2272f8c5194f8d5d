r"""Regular expressions of Python in JavaScript's syntax (flag ``v``): rules are written once.

Knows what the tokenizer and the normalization use, and refuses the rest. ``\w``, ``\d`` and ``\s``
become the characters that Python means, and so does ignoring case.
"""

import re
from collections.abc import Iterable, Iterator

_WORD, _DIGIT = r"\p{L}\p{N}_", r"\p{Nd}"
_SPACES = [
    (0x9, 0xD), (0x1C, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A),
    (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
]  # fmt: skip
"""Characters of ``str.isspace``."""
_OTHER_CASES = {"i": "İı", "s": "ſ", "k": "\u212a"}  # besides lower and upper case
_GROUP = re.compile(
    r"\(\?(?:(?P<look><?[=!]|:)|P<(?P<name>\w+)>|P=(?P<same>\w+)\)|(?P<flag>[is]):)"
)
_REPEAT = re.compile(r"[*+?]\??|\{(?P<low>\d*)(?P<comma>,?)(?P<high>\d*)\}\??")
_Ranges = list[tuple[int, int]]


def to_javascript(pattern: re.Pattern[str]) -> str:
    """Return the source of ``new RegExp(source, "v")`` that matches the same.

    Raises:
        ValueError: for syntax that this does not know.
    """
    return "".join(_Translation(pattern).parts())


def spaces() -> str:
    """Return the class of white space, as ``str.split`` divides text."""
    return f"[{_class_of(_SPACES)}]"


class _Translation:
    """A walk over a pattern."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._text, self._at = pattern.pattern, 0
        self._verbose = bool(pattern.flags & re.VERBOSE)
        flags = {flag for flag, value in (("i", re.I), ("s", re.S)) if pattern.flags & value}
        self._flags = [frozenset(flags)]  # of the groups that are open
        if pattern.flags & ~(re.VERBOSE | re.I | re.S | re.UNICODE):
            raise ValueError(f"unknown flags of {pattern!r}")

    def parts(self) -> Iterator[str]:
        """Yield the translated pieces."""
        while self._at < len(self._text):
            char = self._text[self._at]
            if self._verbose and char.isspace():
                self._at += 1
            elif self._verbose and char == "#":
                self._at = (self._text + "\n").index("\n", self._at)
            elif char == "(":
                yield self._group()
            elif char == ")":
                self._flags.pop()
                yield self._take()
            elif char == "[":
                yield self._class()
            elif char in "|^$":
                yield self._take()
            else:
                yield self._atom()

    def _take(self, length: int = 1) -> str:
        taken = self._text[self._at : self._at + length]
        self._at += length
        return taken

    def _group(self) -> str:
        found = _GROUP.match(self._text, self._at)
        if found is None:
            if self._text.startswith("(?", self._at):
                raise self._unknown()
            self._flags.append(self._flags[-1])
            return self._take()
        self._at = found.end()
        if found["same"]:
            return rf"\k<{found['same']}>"
        self._flags.append(self._flags[-1] | {found["flag"]} if found["flag"] else self._flags[-1])
        return f"(?<{found['name']}>" if found["name"] else f"(?{found['look'] or ':'}"

    def _atom(self) -> str:
        repeat = _REPEAT.match(self._text, self._at)
        if repeat is not None:
            self._at = repeat.end()
            if self._text.startswith("+", self._at):
                raise self._unknown()  # a possessive one
            if repeat["low"] == "":
                return f"{{0,{repeat['high']}}}"
            return repeat.group()
        if self._text[self._at] == ".":
            self._at += 1
            return r"[\s\S]" if "s" in self._flags[-1] else r"[^\n]"
        if self._text[self._at] == "\\":
            found = self._escape()
            if isinstance(found, str):
                return f"[{found}]"
        else:
            code = ord(self._text[self._at])
            found = [(code, code)]
            self._at += 1
        shown = _class_of(self._with_cases(found))
        return shown if found == self._with_cases(found) else f"[{shown}]"

    def _escape(self) -> str | _Ranges:
        """Return the part of a class that an escape stands for, or its character."""
        self._at += 1
        kind = self._take()
        if kind in "uU":
            code = int(self._take(4 if kind == "u" else 8), 16)
            return [(code, code)]
        if kind in "wd":
            return _WORD if kind == "w" else _DIGIT
        if kind in "sS":
            return _class_of(_SPACES) if kind == "s" else f"[^{_class_of(_SPACES)}]"
        if kind in "WD":
            return f"[^{_WORD if kind == 'W' else _DIGIT}]"
        if kind.isalnum():
            raise self._unknown()
        return [(ord(kind), ord(kind))]

    def _class(self) -> str:
        self._at += 1
        start = "[^" if self._text[self._at] == "^" else "["
        self._at += len(start) - 1
        sets, ranges = "", list[tuple[int, int]]()
        while self._text[self._at] != "]":
            found = self._member()
            if isinstance(found, str):
                sets += found
                continue
            low = high = found[0][0]
            if self._text[self._at] == "-" and self._text[self._at + 1] != "]":
                self._at += 1
                end = self._member()
                assert not isinstance(end, str)
                high = end[0][0]
            ranges.append((low, high))
        self._at += 1
        return f"{start}{sets}{_class_of(self._with_cases(ranges))}]"

    def _member(self) -> str | _Ranges:
        if self._text[self._at] == "\\":
            return self._escape()
        code = ord(self._take())
        return [(code, code)]

    def _with_cases(self, ranges: _Ranges) -> _Ranges:
        if "i" not in self._flags[-1]:
            return ranges
        chars = {chr(code) for low, high in ranges for code in range(low, high + 1)}
        cased = {
            other for char in chars for other in (char.lower(), char.upper()) if len(other) == 1
        }
        more = {other for char in cased for other in _OTHER_CASES.get(char, "")}
        return ranges + [(ord(char), ord(char)) for char in sorted((cased | more) - chars)]

    def _unknown(self) -> ValueError:
        rest = self._text[self._at : self._at + 20]
        return ValueError(f"no JavaScript is known for {rest!r} in {self._text[:60]!r}")


def _class_of(ranges: Iterable[tuple[int, int]]) -> str:
    """Return the inside of a class, or one character outside of classes."""
    merged: list[list[int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return "".join(
        _shown(low) if low == high else f"{_shown(low)}-{_shown(high)}" for low, high in merged
    )


def _shown(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\u{{{code:x}}}"
