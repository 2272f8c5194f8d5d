"""What a tokenizer is, the plainest one, and what tokenizers share."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Protocol, runtime_checkable

from elmokit.text.normalization import Normalization, normalize, normalized_tokens


@runtime_checkable
class Tokenizer(Protocol):
    """Splits text into tokens, which are never empty and contain no white space.

    A tokenizer that can still produce the tokens of earlier versions has a class method
    ``of_version(version)``, which returns such a tokenizer, or None for other versions. One that
    is faster with many texts has a method ``sentences_batch(texts)``, an iterator of `sentences`.
    """

    name: str
    """In the `elmokit.text.tokenizers.registry`."""
    version: str
    """Changes whenever the tokens of some text change."""

    def tokenize(self, sentence: str) -> list[str]: ...

    def sentences(self, text: str) -> list[list[str]]:
        """Split raw text into sentences of tokens. A line break ends a sentence."""
        ...


def sentences_batch(tokenizer: Tokenizer, texts: Iterable[str]) -> Iterator[list[list[str]]]:
    split_many = getattr(tokenizer, "sentences_batch", partial(map, tokenizer.sentences))
    return split_many(texts)


class WhitespaceTokenizer:
    """Tokens between white space, one sentence a line: for text that is already tokenized."""

    name = "whitespace"
    version = "1"

    def tokenize(self, sentence: str) -> list[str]:
        return sentence.split()

    def sentences(self, text: str) -> list[list[str]]:
        """Return the tokens of every line that is not blank; only LF and CR end a line."""
        lines = text.replace("\r", "\n").split("\n")
        return [tokens for line in lines if (tokens := line.split())]


class NormalizingTokenizer:
    """Normalizes text before the tokenizer, and tokens after it, as corpus readers do."""

    def __init__(self, tokenizer: Tokenizer, normalization: Normalization) -> None:
        self.name, self.version = tokenizer.name, tokenizer.version
        self._tokenizer = tokenizer
        self._form: Normalization = normalization

    def tokenize(self, sentence: str) -> list[str]:
        tokens = self._tokenizer.tokenize(normalize(sentence, self._form))
        return normalized_tokens(tokens, self._form)

    def sentences(self, text: str) -> list[list[str]]:
        return next(self.sentences_batch([text]))

    def sentences_batch(self, texts: Iterable[str]) -> Iterator[list[list[str]]]:
        plain = (normalize(text, self._form) for text in texts)
        for sentences in sentences_batch(self._tokenizer, plain):
            yield [normalized_tokens(tokens, self._form) for tokens in sentences]


def cut_long_text(text: str, max_characters: int) -> list[str]:
    """Cut text for libraries whose time grows faster than the text; joined, the pieces are it.

    A piece ends after a full stop in its second half, else at white space there, else anywhere.
    """
    pieces: list[str] = []
    start = 0
    while len(text) - start > max_characters:
        middle, limit = start + max_characters // 2, start + max_characters
        cut = max(text.rfind(mark, middle, limit) + len(mark) for mark in (". ", "? ", "! "))
        if cut <= middle + 1:
            cut = text.rfind(" ", middle, limit) + 1
        if cut <= middle:
            cut = limit
        pieces.append(text[start:cut])
        start = cut
    return [*pieces, text[start:]]
