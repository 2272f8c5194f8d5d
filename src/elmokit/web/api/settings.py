"""What a server answers, and how much of it; no heavy imports: `elmokit serve --help` reads it."""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass

from elmokit.errors import InputError

CHARACTERS_PER_WORD = 16
"""A text may have this many characters for each word that it may have."""


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """User options of a server."""

    name: str
    """Of the model, as clients call it."""
    api_key: str | None = None
    """Every request but those for /health must carry it, if given."""
    allowed_hosts: Collection[str] = ()
    """Names by which clients may call the server, besides its own."""
    layers: str | int = "average"
    """As in `Embedder.embed`, but for "all"."""
    pooling: str = "mean"
    """As in `Embedder.embed_sentences`."""
    normalize: bool = True
    """Scale pooled vectors to length 1, unless a request says otherwise."""
    state: str = "reset"
    """As in `Embedder.embed`, but for "carry": an answer must not depend on other requests."""
    max_words: int = 2048
    """Of a text."""
    max_texts: int = 256
    """Of a request."""
    batch_tokens: int = 2048
    """Words and sentence boundaries that are computed together."""
    batch_wait_seconds: float = 0.004
    """How long a request waits for others, if nothing else is being computed."""
    max_requests: int = 64
    """Requests that arrive, wait, are computed or answered; more are refused."""
    timeout_seconds: float = 30.0
    """In which a request is computed, or refused."""

    def __post_init__(self) -> None:
        if not 0 < self.timeout_seconds < math.inf:
            raise InputError(
                f"`timeout_seconds` must be positive and finite, got {self.timeout_seconds}."
            )
        if self.api_key is not None and not re.fullmatch("[!-~]+", self.api_key):
            raise InputError(
                "The API key must be printable ASCII without spaces, and not empty: "
                "clients send it in a header."
            )

    @property
    def max_characters(self) -> int:
        """Of a text."""
        return self.max_words * CHARACTERS_PER_WORD
