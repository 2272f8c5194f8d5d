"""How much a server takes by default; no heavy imports, since `elmokit serve --help` reads it."""

MAX_WORDS = 2048
"""Of a text."""
CHARACTERS_PER_WORD = 16
"""A text may have this many characters for each word that it may have."""
MAX_TEXTS = 256
"""Of a request."""
BATCH_TOKENS = 2048
"""Words and sentence boundaries that are computed together."""
MAX_REQUESTS = 64
"""Requests that arrive, wait, are computed or answered; more are refused."""
TIMEOUT_SECONDS = 30.0
"""In which a request is computed, or refused."""
MAX_BODY_BYTES = 4_000_000
"""Of a request."""
BODY_SECONDS = 20.0
"""In which a request must have arrived."""
