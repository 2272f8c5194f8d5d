"""Tokenizers by name.

Name and version of the tokenizer are stored with a model. A new tokenizer is one file with a class
that follows `elmokit.text.tokenizers.protocol.Tokenizer`, and one line in `TOKENIZERS`.
"""

import functools
import logging
from dataclasses import dataclass, replace
from importlib import import_module

from elmokit.errors import ConfigError
from elmokit.text.tokenizers.languages import LANGUAGES, version_of
from elmokit.text.tokenizers.protocol import Tokenizer

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RegisteredTokenizer:
    """Where a tokenizer is; it is imported on first use."""

    module: str
    class_name: str
    purpose: str


TOKENIZERS = {
    "whitespace": RegisteredTokenizer(".protocol", "WhitespaceTokenizer", "tokenized text"),
    "simple": RegisteredTokenizer(
        ".simple",
        "SimpleTokenizer",
        "raw text with spaces between words; simple:LANG knows the abbreviations of "
        f"{', '.join(filter(None, LANGUAGES))}",
    ),
    "characters": RegisteredTokenizer(".characters", "CharacterTokenizer", "characters as words"),
    "english": RegisteredTokenizer(".english", "EnglishTokenizer", "Moses tokens; extra en"),
    "korean": RegisteredTokenizer(".korean", "KoreanTokenizer", "morphemes; extra ko"),
}
AUTO, DEFAULT_TOKENIZER = "auto", "simple"
"""A name in settings: the tokenizer of finished shards, else the default."""


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """The tokenizer of a text."""

    name: str = "whitespace"
    """One of `TOKENIZERS`; in settings of a text also `AUTO`. ``simple:de`` gives the version of a
    language."""
    version: str = ""
    """Version used on the model's training text; empty if unknown."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()

    def matches(self, other: "TokenizerConfig") -> bool:
        """Return whether both are the same tokenizer, in the same version as far as it is known."""
        is_same_version = self.version == other.version or "" in (self.version, other.version)
        return self.name == other.name and is_same_version

    def __post_init__(self) -> None:
        versions = {f"{DEFAULT_TOKENIZER}:{code}": version_of(code) for code in LANGUAGES}
        if self.name in versions and not self.version:
            object.__setattr__(self, "version", versions[self.name])
            object.__setattr__(self, "name", DEFAULT_TOKENIZER)
        if self.name not in (AUTO, *TOKENIZERS):
            raise ConfigError(
                f"there is no tokenizer {self.name!r}: choose one of {describe_tokenizers()}."
            )


def tokenizer_metadata(tokenizer: Tokenizer | TokenizerConfig) -> dict[str, str]:
    """Return what names a tokenizer in the metadata of a result."""
    return {"name": tokenizer.name, "version": tokenizer.version}


def build_tokenizer(config: TokenizerConfig | str) -> Tokenizer:
    """Return the tokenizer of a config or name (newest version), cached by name and version.

    Logs a warning, once, if the tokenizer cannot produce the tokens of the version in the config.
    """
    if isinstance(config, str):
        config = TokenizerConfig(name=config)
    name = DEFAULT_TOKENIZER if config.name == AUTO else config.name
    tokenizer = _tokenizer(name, config.version)
    if config.version not in ("", tokenizer.version):
        _warn_of_version(name, config.version, tokenizer.version)
    return tokenizer


def tokenizer_for_model(
    own: TokenizerConfig, other: TokenizerConfig | str | None = None
) -> TokenizerConfig:
    """Return the tokenizer of text that a model reads: its own, or ``other``, with a warning.

    Named without a version, its own keeps the version of the model's training text.
    """
    if isinstance(other, str):
        other = TokenizerConfig(name=other)
    if other in (None, replace(own, version="")):
        return own
    if not other.matches(own):
        _log.warning(
            "the text is split by tokenizer %r, but the model was trained with %r: expect worse "
            "results", str(other), str(own),
        )  # fmt: skip
    return other


def describe_tokenizers() -> str:
    """Return all names and purposes, for help texts."""
    return ", ".join(f"{name} ({entry.purpose})" for name, entry in TOKENIZERS.items())


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
        "The model's text was tokenized by %r version %r, but version %r is installed: some tokens "
        "may differ. A version names the packages that it needs, or is that of an earlier elmokit.",
        name, stored, present,
    )  # fmt: skip
