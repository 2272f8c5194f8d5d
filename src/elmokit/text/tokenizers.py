"""Tokenizers behind one small protocol (interim; the text engineer replaces this file)."""

from dataclasses import dataclass
from typing import Literal, Protocol


class Tokenizer(Protocol):
    """Splits raw text."""

    name: str
    version: str

    def tokenize(self, sentence: str) -> list[str]:
        """Split one sentence."""
        ...

    def sentences(self, text: str) -> list[list[str]]:
        """Split raw text into tokenized sentences."""
        ...


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """Which tokenizer."""

    name: Literal["whitespace", "simple", "english", "korean"] = "whitespace"
    version: str = ""


class WhitespaceTokenizer:
    """Text that is tokenized already."""

    name = "whitespace"
    version = "1"

    def tokenize(self, sentence: str) -> list[str]:
        """Split at white space."""
        return sentence.split()

    def sentences(self, text: str) -> list[list[str]]:
        """One sentence a line."""
        return [line.split() for line in text.split("\n")]


def build_tokenizer(config: TokenizerConfig | str) -> Tokenizer:
    """Build a tokenizer."""
    name = config if isinstance(config, str) else config.name
    if name == "whitespace":
        return WhitespaceTokenizer()
    if name == "simple":
        from elmokit.text.simple import SimpleTokenizer

        return SimpleTokenizer()
    raise ValueError(name)
