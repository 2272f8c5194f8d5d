"""Metadata of results: what made the numbers that a command prints or a file holds."""

from typing import Any, Literal

from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.protocol import Tokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, tokenizer_metadata
from elmokit.version import __version__

METADATA_KEY = "elmokit"
"""Name of the metadata, as JSON, in HDF5, Parquet and NPZ files."""
EMBEDDINGS = "embedding file"
FileKind = Literal["embedding file", "occurrences of words", "surprisal", "model weights"]
"""``kind`` in the metadata of a file; embedding files have none."""


def result_metadata(
    model_hash: str | None, tokenizer: Tokenizer | TokenizerConfig, normalization: Normalization
) -> dict[str, Any]:
    """Return the metadata of results that a model computed; JSON-able.

    ``model_hash`` is None if no biLM was read.
    """
    return {
        "model_hash": model_hash,
        "tokenizer": tokenizer_metadata(tokenizer),
        "normalization": normalization,
        "elmokit_version": __version__,
    }
