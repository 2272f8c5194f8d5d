"""The origin of a result: what made the numbers that a command prints or a file keeps."""

from typing import Any, Literal

from elmokit import __version__
from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.protocol import Tokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, tokenizer_metadata

METADATA_KEY = "elmokit"
"""Name under which a file of another program's format holds its metadata, as JSON."""
FileKind = Literal["embedding file", "occurrences of words", "surprisal", "model weights"]
"""What such a file holds: ``kind`` in its metadata, which embedding files do not have."""


def result_metadata(
    model_hash: str | None, tokenizer: Tokenizer | TokenizerConfig, normalization: Normalization
) -> dict[str, Any]:
    """Return model (none if no biLM is read), text processing and version; JSON-able."""
    return {
        "model_hash": model_hash,
        "tokenizer": tokenizer_metadata(tokenizer),
        "normalization": normalization,
        "elmokit_version": __version__,
    }
