"""What made a result or a directory: the metadata of results, and directories of newer versions."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from elmokit.errors import ConfigError, FormatError, InputError
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
    """Return the metadata of results that a model computed; JSON-able."""
    return {
        "model_hash": model_hash,
        "tokenizer": tokenizer_metadata(tokenizer),
        "normalization": normalization,
        "elmokit_version": __version__,
    }


def newer_version_hint(written_by: object) -> str:
    """Return what to do if ``written_by``, the version in a file, is a newer one; else ""."""
    if _release(str(written_by)) <= _release(__version__):
        return ""
    return (
        f"The directory was written by elmokit {written_by}, and this is {__version__}: install "
        "that version or a newer one."
    )


@contextmanager
def adding_version_hint(written_by: object) -> Iterator[None]:
    """Add `newer_version_hint` to errors about the contents of a directory that lack it."""
    try:
        yield
    except (ConfigError, FormatError, InputError) as error:
        if (hint := newer_version_hint(written_by)) and hint not in str(error):
            raise type(error)(f"{error}\n{hint}") from error
        raise


def _release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (0, 2) for ``0.2.0.dev0`` and ``0.2``."""
    parts = version.split(".")
    numbers = itertools.takewhile(str.isdecimal, parts[:2])
    return tuple(int(number[:9]) for number in numbers)
