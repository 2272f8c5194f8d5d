"""Raw text to sentences of tokens: the protocol, the choice by name, and the plainest member.

A model is bound to the tokenizer of its training text, so name and version are stored with it. Four
are built in: ``whitespace`` for text that is already tokenized, ``simple`` for raw text of any
language, ``english`` (extra ``en``) for the original English models, ``korean`` (extra ``ko``).
"""

import functools
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

from elmokit.errors import ConfigError

_log = logging.getLogger(__name__)

TokenizerName = Literal["whitespace", "simple", "english", "korean"]


@runtime_checkable
class Tokenizer(Protocol):
    """What splits text. Tokens are never empty and hold no white space.

    A tokenizer that is faster on many texts at once also has ``sentences_batch``, see
    `BatchTokenizer`; `sentences_batch` of this module calls it where there is one.
    """

    name: str
    """Name by which `build_tokenizer` finds it again."""
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


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """Which tokenizer a text was, or is to be, split with."""

    name: TokenizerName = "whitespace"
    """One of the built-in tokenizers."""
    version: str = ""
    """Version that the model's training text was split with; empty when not known."""

    def __post_init__(self) -> None:
        """Check the name."""
        _check_name(self.name)


def build_tokenizer(config: TokenizerConfig | str) -> Tokenizer:
    """Return the tokenizer of a config or name; the same object for the same name.

    A warning is logged, once, when the version at hand is not the one in the config.

    Args:
        config: name and version, or just the name.

    Raises:
        ConfigError: for an unknown name.
        MissingExtraError: if the library behind it is not installed.
    """
    name = config if isinstance(config, str) else config.name
    _check_name(name)
    tokenizer = _tokenizer(name)
    if not isinstance(config, str) and config.version not in ("", tokenizer.version):
        _warn_of_version(name, config.version, tokenizer.version)
    return tokenizer


def sentences_batch(tokenizer: Tokenizer, texts: Iterable[str]) -> Iterator[list[list[str]]]:
    """Yield the sentences of each text, by the fast path of the tokenizer where it has one."""
    if isinstance(tokenizer, BatchTokenizer):
        return tokenizer.sentences_batch(texts)
    return map(tokenizer.sentences, texts)


class WhitespaceTokenizer:
    """Text that is already tokenized: tokens between white space, one sentence a line."""

    name = "whitespace"
    version = "1"

    def tokenize(self, sentence: str) -> list[str]:
        """Split at white space (that of Unicode, the no-break space included)."""
        return sentence.split()

    def sentences(self, text: str) -> list[list[str]]:
        """Return the tokens of every line that is not blank; only LF and CR end a line."""
        lines = text.replace("\r", "\n").split("\n")
        return [tokens for line in lines if (tokens := line.split())]


def cut_long_text(text: str, max_characters: int) -> list[str]:
    """Cut text for libraries whose time grows faster than its length.

    Args:
        text: any text.
        max_characters: length above which text is cut.

    Returns:
        Pieces of at most that length, cut after a full stop where there is one in the second half,
        else at white space, else anywhere. Joined they are the text.
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


def _check_name(name: str) -> None:
    if name not in get_args(TokenizerName):
        raise ConfigError(
            f"there is no tokenizer {name!r}: choose one of {', '.join(get_args(TokenizerName))}. "
            f"For another one, split the text yourself and use whitespace."
        )


@functools.cache
def _tokenizer(name: str) -> Tokenizer:
    if name == "simple":
        from elmokit.text.tokenizers.simple import SimpleTokenizer

        return SimpleTokenizer()
    if name == "english":
        from elmokit.text.tokenizers.english import EnglishTokenizer

        return EnglishTokenizer()
    if name == "korean":
        from elmokit.text.tokenizers.korean import KoreanTokenizer

        return KoreanTokenizer()
    return WhitespaceTokenizer()


@functools.cache
def _warn_of_version(name: str, stored: str, present: str) -> None:
    _log.warning(
        "The model's text was split by tokenizer %r version %r, here is version %r: some tokens "
        "may differ. Install that version for the very same tokens.",
        name,
        stored,
        present,
    )
