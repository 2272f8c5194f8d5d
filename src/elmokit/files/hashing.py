"""SHA-256, in hex, by which files and texts are recognized."""

import hashlib
from pathlib import Path


def file_sha256(path: Path) -> str:
    """Hash the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_sha256(text: str) -> str:
    """Hash a text in UTF-8, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
