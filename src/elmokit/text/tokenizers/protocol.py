"""What every tokenizer offers."""

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

from elmokit.text.normalization import Normalization, normalize


@runtime_checkable
class Tokenizer(Protocol):
    """What splits text. Tokens are never empty and hold no white space.

    A tokenizer that is faster on many texts at once also has ``sentences_batch``, see
    `BatchTokenizer`. One that can still make the tokens of an earlier version has a class method
    ``of_version(version)``, which returns that tokenizer, or None if the version is no earlier one.
    """

    name: str
    """Name by which `elmokit.text.tokenizers.registry` finds it again."""
    version: str
    """Changes whenever the tokens of some text change."""

    def tokenize(self, sentence: str) -> list[str]:
        """Split one sentence into tokens."""
        ...

    def sentences(self, text: str) -> list[list[str]]:
        """Split raw text into sentences, and each into tokens. A line break ends a sentence."""
        ...


@runtime_checkable
class BatchTokenizer(Tokenizer, Protocol):
    """A tokenizer with a fast path for many texts."""

    def sentences_batch(self, texts: Iterable[str]) -> Iterator[list[list[str]]]:
        """Yield for each text, in order, what ``sentences`` returns; reads ahead a little."""
        ...


def sentences_batch(tokenizer: Tokenizer, texts: Iterable[str]) -> Iterator[list[list[str]]]:
    """Yield the sentences of each text, by the fast path of the tokenizer where it has one."""
    if isinstance(tokenizer, BatchTokenizer):
        return tokenizer.sentences_batch(texts)
    return map(tokenizer.sentences, texts)


class NormalizingTokenizer:
    """A tokenizer that is given text as a corpus reader gives it: normalized first.

    Args:
        tokenizer: Splits the normalized text.
        normalization: Of the model that reads the tokens. With ``"none"`` and ``"NFC"`` the text
            goes to the tokenizer as it is; the model composes the words.
    """

    def __init__(self, tokenizer: Tokenizer, normalization: Normalization) -> None:
        self.name, self.version = tokenizer.name, tokenizer.version
        self._tokenizer = tokenizer
        self._form: Normalization = "none" if normalization == "NFC" else normalization

    def tokenize(self, sentence: str) -> list[str]:
        """Normalize one sentence and split it into tokens."""
        return self._tokenizer.tokenize(normalize(sentence, self._form))

    def sentences(self, text: str) -> list[list[str]]:
        """Normalize raw text and split it into sentences of tokens."""
        return self._tokenizer.sentences(normalize(text, self._form))
