"""Guessing the encoding of text that is not UTF-8, for advice in error messages."""

import codecs
from dataclasses import dataclass

SAMPLE_BYTES = 1 << 14
"""Enough text for a guess."""
_MIN_ZEROS = 4
"""NUL bytes from which text may be UTF-16 with few letters beyond ASCII."""
_MIN_FITTING = 0.9
_MAX_CONTROLS = 0.01
"""Share of control characters above which bytes are no text."""


@dataclass(frozen=True)
class _Candidate:
    name: str
    """As ``iconv -f`` takes it."""
    ranges: tuple[tuple[int, int], ...]
    """Expected code points beyond ASCII and punctuation."""
    typical: tuple[str, float]
    """Frequent characters of such text, and their minimum share."""
    min_density: float = 0.0
    """Minimum share of non-ASCII letters among all letters."""


_HANGUL = (0xAC00, 0xD7A3)
_KANA = (0x3040, 0x30FF)
_HAN = (0x4E00, 0x9FFF)
_KANA_CHARS = "".join(map(chr, range(_KANA[0], _KANA[1])))
_KOREAN = ((_HANGUL, (0x3131, 0x3163)), ("이다는의가을에고은하를지기로리한사도", 0.1))
_CANDIDATES = (
    _Candidate("UTF-16LE", *_KOREAN),  # whose bytes have few zeros
    _Candidate("CP949", *_KOREAN),
    _Candidate("SHIFT_JIS", (_KANA, _HAN), (_KANA_CHARS, 0.2)),
    _Candidate("EUC-JP", (_KANA, _HAN), (_KANA_CHARS, 0.2)),
    _Candidate("GB18030", (_HAN,), ("的一是不了在人有我他这中大来上国个到说们为子和你地", 0.05)),
    _Candidate("BIG5", (_HAN,), ("的一是不了在人有我他這中大來上國個到說們為子和你地", 0.05)),
    _Candidate("UTF-16BE", *_KOREAN),  # after CP949, whose bytes in pairs look like Hangul
    _Candidate("CP1251", ((0x0400, 0x045F),), ("оеаинтслвр", 0.3), min_density=0.5),
    _Candidate("CP1252", ((0x00C0, 0x00FF), (0x0152, 0x0178)), ("éèàùêôçäöüßñóíáúøåæãõ", 0.3)),
)  # fmt: skip


def guess_encoding(sample: bytes) -> str | None:
    """Guess the encoding of whole lines that are not UTF-8: a name for ``iconv -f``, or None.

    Where a line follows another one, the sample begins with the line feed between them, which is
    half of a character in UTF-16LE.
    """
    num_zeros = sample.count(0)  # in UTF-16, the upper halves of ASCII
    if num_zeros >= _MIN_ZEROS and num_zeros > len(sample) // 10:
        for name, halves in (("UTF-16BE", sample[0::2]), ("UTF-16LE", sample[1::2])):
            if halves.count(0) >= _MIN_FITTING * num_zeros:
                return name
    return next((c.name for c in _CANDIDATES if _fits(sample, c)), None)


def _fits(sample: bytes, candidate: _Candidate) -> bool:
    decoder = codecs.getincrementaldecoder(candidate.name)("replace")
    text = decoder.decode(sample)  # up to the last whole character
    if sum(map(_is_control, text)) > _MAX_CONTROLS * len(text):
        return False
    beyond_ascii = [char for char in text if char > "\x7f" and not _is_punctuation(char)]
    num_fitting = sum(
        any(first <= ord(char) <= last for first, last in candidate.ranges) for char in beyond_ascii
    )
    typical, min_share = candidate.typical
    num_typical = sum(char in typical for char in beyond_ascii)
    num_letters = len(beyond_ascii) + sum(char.isascii() and char.isalpha() for char in text)
    return (
        num_fitting > 0
        and num_fitting >= _MIN_FITTING * len(beyond_ascii)
        and num_typical >= min_share * len(beyond_ascii)
        and num_fitting >= candidate.min_density * num_letters
    )


def _is_control(char: str) -> bool:
    return char < " " and char not in "\t\n\v\f\r"


def _is_punctuation(char: str) -> bool:
    # U+FFFD is not punctuation: it counts as a misfit.
    code = ord(char)
    return 0xA0 <= code < 0xC0 or 0x2010 <= code < 0x2E80 or 0x3000 <= code < 0x3020 or (
        0xFF00 <= code < 0xFF61
    )  # fmt: skip
