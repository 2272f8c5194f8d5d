"""English tokens as the original models read them (extra ``en``).

They were trained on the 1 Billion Word Benchmark, which was tokenized with the Moses scripts: ``don
't``, ``Mary 's``, ``15-year-old``. Use this tokenizer with their weights; ``simple`` is faster and
closer to the treebanks. Nothing is escaped (``&`` stays ``&``).
"""

import functools
from typing import Any

from elmokit.errors import needs_extra
from elmokit.text.tokenizers.protocol import cut_long_text

_MAX_TEXT_CHARACTERS = 20_000
_NEUTRAL = str.maketrans(dict.fromkeys("ȸȹ∮∯☄☇☈☉☝♨♬♭", "\u25a1"))
"""Signs that pySBD uses as marks of its own, so that it loses their sentence or the next."""


class EnglishTokenizer:
    """Moses tokens by sacremoses, sentences by pySBD."""

    name = "english"

    def __init__(self) -> None:
        from importlib.metadata import version

        with needs_extra("en", module="sacremoses and pysbd"):
            libraries = f"sacremoses {version('sacremoses')}, pysbd {version('pysbd')}"
            import pysbd
            from sacremoses import MosesTokenizer
        self.version = f"2, {libraries}"
        self._segmenter = functools.partial(pysbd.Segmenter, language="en", clean=False)
        self._moses = MosesTokenizer(lang="en")

    def tokenize(self, sentence: str) -> list[str]:
        return list(self._moses.tokenize(sentence, escape=False))

    def sentences(self, text: str) -> list[list[str]]:
        parts = (
            part
            for line in text.splitlines()
            for piece in cut_long_text(line, _MAX_TEXT_CHARACTERS)
            for part in self._parts(piece)
        )
        return [tokens for part in parts if (tokens := self.tokenize(part))]

    def _parts(self, text: str) -> list[str]:
        """Return the sentences of a text, which joined are the text."""
        segmenter: Any = self._segmenter()  # it keeps the text: one per call
        neutral, parts, at = text.translate(_NEUTRAL), [], 0
        for sentence in segmenter.segment(neutral):
            if (start := neutral.find(sentence, at)) >= 0:
                parts.append(text[at : start + len(sentence)])
                at = start + len(sentence)
        return [*parts, text[at:]]
