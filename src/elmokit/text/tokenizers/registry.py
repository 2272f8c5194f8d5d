"""Tokenizers by name.

A model is bound to the tokenizer of its training text, so name and version are stored with it. A
new tokenizer is one file with a class that follows `elmokit.text.tokenizers.protocol.Tokenizer`,
and one line in `TOKENIZERS`; commands, configurations and contract tests read their choices there.
"""

import functools
import logging
from dataclasses import dataclass
from importlib import import_module

from elmokit.errors import ConfigError
from elmokit.text.tokenizers.protocol import Tokenizer

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RegisteredTokenizer:
    """Where a tokenizer is, and what it is for. It is imported when it is first built."""

    module: str
    """Its name; with a leading dot, one beside this."""
    class_name: str
    purpose: str
    """In a few words, for help texts."""


TOKENIZERS = {
    "whitespace": RegisteredTokenizer(".whitespace", "WhitespaceTokenizer", "tokenized text"),
    "simple": RegisteredTokenizer(".simple", "SimpleTokenizer", "raw text of any language"),
    "english": RegisteredTokenizer(".english", "EnglishTokenizer", "Moses tokens; extra en"),
    "korean": RegisteredTokenizer(".korean", "KoreanTokenizer", "morphemes; extra ko"),
}


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """Which tokenizer a text was, or is to be, split with."""

    name: str = "whitespace"
    """One of `TOKENIZERS`."""
    version: str = ""
    """Version that the model's training text was split with; empty when not known."""

    def __post_init__(self) -> None:
        """Check the name."""
        _check_name(self.name)


def build_tokenizer(config: TokenizerConfig | str) -> Tokenizer:
    """Return the tokenizer of a config or name; the same object for the same name and version.

    A tokenizer that can still make the tokens of the version in the config does so; for another
    one a warning is logged, once, when the version at hand is not that of the config.

    Args:
        config: Name and version, or just the name: the newest version.

    Raises:
        ConfigError: for an unknown name.
        MissingExtraError: if the library behind it is not installed.
    """
    if isinstance(config, str):
        config = TokenizerConfig(name=config)
    tokenizer = _tokenizer(config.name, config.version)
    if config.version not in ("", tokenizer.version):
        _warn_of_version(config.name, config.version, tokenizer.version)
    return tokenizer


def describe_tokenizers() -> str:
    """Return the names and what each is for, as in a help text."""
    return ", ".join(f"{name} ({found.purpose})" for name, found in TOKENIZERS.items())


def _check_name(name: str) -> None:
    if name not in TOKENIZERS:
        raise ConfigError(
            f"there is no tokenizer {name!r}: choose one of {', '.join(TOKENIZERS)}. For another "
            "one, split the text yourself and use whitespace."
        )


@functools.cache
def _tokenizer(name: str, version: str) -> Tokenizer:
    registered = TOKENIZERS[name]
    kind = getattr(import_module(registered.module, __package__), registered.class_name)
    if not version:
        return kind()
    earlier = kind.of_version(version) if hasattr(kind, "of_version") else None
    return _tokenizer(name, "") if earlier is None else earlier


@functools.cache
def _warn_of_version(name: str, stored: str, present: str) -> None:
    _log.warning(
        "The model's text was split by tokenizer %r version %r, here is version %r: some tokens "
        "may differ. Install that version for the very same tokens.",
        name,
        stored,
        present,
    )
