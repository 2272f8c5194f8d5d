"""What a server answers, and how much of it."""

import math
from collections.abc import Collection
from dataclasses import dataclass

from elmokit.embed.embedder import StatePolicy, check_state_policy
from elmokit.embed.pooling import check_pooling
from elmokit.errors import InputError
from elmokit.inference.results import Layers, check_one_layer
from elmokit.web.api import limits


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """User options of a server."""

    name: str
    """Of the model, as clients call it."""
    api_key: str | None = None
    """Every request but those for /health must carry it, if given."""
    allowed_hosts: Collection[str] = ()
    """Names by which clients may call the server, besides its own."""
    layers: Layers | str = "average"
    """As in `Embedder.embed`, but for "all"."""
    pooling: str = "mean"
    """As in `Embedder.embed_sentences`."""
    normalize: bool = True
    """Scale pooled vectors to length 1, unless a request says otherwise."""
    state: StatePolicy | str = "reset"
    """As in `Embedder.embed`, but for "carry": an answer must not depend on other requests."""
    max_words: int = limits.MAX_WORDS
    """Of a text."""
    max_texts: int = limits.MAX_TEXTS
    """Of a request."""
    batch_tokens: int = limits.BATCH_TOKENS
    """Words and sentence boundaries that are computed together."""
    batch_wait_seconds: float = 0.004
    """How long a request waits for others, if nothing else is being computed."""
    max_requests: int = limits.MAX_REQUESTS
    """Requests that arrive, wait, are computed or answered; more are refused."""
    timeout_seconds: float = limits.TIMEOUT_SECONDS
    """In which a request is computed, or refused."""

    def __post_init__(self) -> None:
        check_pooling(self.pooling)
        if check_state_policy(self.state) == "carry":
            raise InputError(
                'state="carry" would let an answer depend on the requests before it: a server '
                'has "reset" and "warm".'
            )
        check_one_layer(self.layers)
        for name in ("max_words", "max_texts", "batch_tokens", "max_requests"):
            if getattr(self, name) < 1:
                raise InputError(f"`{name}` must be at least 1, got {getattr(self, name)}.")
        if not 0 < self.timeout_seconds < math.inf:
            raise InputError(
                f"`timeout_seconds` must be positive and finite, got {self.timeout_seconds}."
            )
        key = self.api_key
        if key is not None and not (key.isascii() and key.isprintable() and key and " " not in key):
            raise InputError(
                "The API key must be printable ASCII without spaces, and not empty: "
                "clients send it in a header."
            )

    @property
    def max_characters(self) -> int:
        """Of a text."""
        return self.max_words * limits.CHARACTERS_PER_WORD
