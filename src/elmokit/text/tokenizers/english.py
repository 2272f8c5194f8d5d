"""English tokens as the original models read them (extra ``en``).

They were trained on the 1 Billion Word Benchmark, which was tokenized with the Moses scripts: ``don
't``, ``Mary 's``, ``15-year-old``. Use this tokenizer with their weights; ``simple`` is faster and
closer to the treebanks. Nothing is escaped (``&`` stays ``&``).
"""

import functools
from importlib.metadata import PackageNotFoundError, version

from elmokit.errors import MissingExtraError
from elmokit.text.tokenizers.long_text import cut_long_text
from elmokit.text.tokenizers.protocol import ShownTokenizer

_MAX_TEXT_CHARACTERS = 20_000


class EnglishTokenizer(ShownTokenizer):
    """Moses tokens by sacremoses, sentences by pySBD.

    Raises:
        MissingExtraError: if one of the two is not installed.
    """

    name = "english"

    def __init__(self) -> None:
        try:
            self.version = f"sacremoses {version('sacremoses')}, pysbd {version('pysbd')}"
            import pysbd
            from sacremoses import MosesTokenizer
        except (PackageNotFoundError, ImportError) as error:
            raise MissingExtraError("sacremoses and pysbd", extra="en") from error
        self._segmenter = functools.partial(pysbd.Segmenter, language="en", clean=False)
        self._moses = MosesTokenizer(lang="en")

    def tokenize(self, sentence: str) -> list[str]:
        """Split one sentence into tokens."""
        return list(self._moses.tokenize(sentence, escape=False))

    def sentences(self, text: str) -> list[list[str]]:
        """Split raw text into sentences of tokens; a line break ends a sentence."""
        parts = (
            part
            for line in text.splitlines()
            for piece in cut_long_text(line, _MAX_TEXT_CHARACTERS)
            for part in self._segmenter().segment(piece)  # it keeps the text: one per call
        )
        return [tokens for part in parts if (tokens := self.tokenize(part))]
