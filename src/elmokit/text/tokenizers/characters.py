"""Every character a token: proteins, and scripts without spaces between words."""

import functools
import re

from elmokit.text.normalization import combining_marks
from elmokit.text.tokenizers.languages import CLOSERS, STRONG_ENDS


class CharacterTokenizer:
    """Tokens of one character with its combining marks; white space is left out.

    A sentence ends with its line, or with marks such as ``。`` and ``!`` and the quotes after them;
    the full stop, which has other uses, is a token like any other.
    """

    name = "characters"
    version = "1"

    def tokenize(self, sentence: str) -> list[str]:
        return _characters().findall(sentence)

    def sentences(self, text: str) -> list[list[str]]:
        parts = (part for line in text.splitlines() for part in _SENTENCE_END.split(line))
        return [tokens for part in parts if (tokens := self.tokenize(part))]


_SENTENCE_END = re.compile(
    rf"(?<=[{re.escape(STRONG_ENDS)}])(?![{re.escape(STRONG_ENDS + CLOSERS)}])"
    rf"|(?<=[{re.escape(STRONG_ENDS)}][{re.escape(CLOSERS)}])"
)


@functools.cache
def _characters() -> re.Pattern[str]:
    joined = rf"\S[{combining_marks()}\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
    return re.compile(rf"[\U0001f1e6-\U0001f1ff]{{2}}|{joined}(?:\u200d{joined})*")
