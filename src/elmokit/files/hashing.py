"""SHA-256 hashes of files and texts, in hex."""

import hashlib
from pathlib import Path

from elmokit.errors import FormatError
from elmokit.files.remote import AnyFile


def file_sha256(path: AnyFile) -> str:
    """Hash the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_sha256(text: str) -> str:
    """Hash a text in UTF-8, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check_file(path: Path, *, num_bytes: int, sha256: str, advice: str) -> None:
    """Check that a file has the recorded size and hash."""
    if not path.is_file():
        raise FormatError(f"{path}: the file is missing (expected {num_bytes} bytes). {advice}")
    found = path.stat().st_size
    if found != num_bytes:
        raise FormatError(f"{path}: damaged: expected {num_bytes} bytes, found {found}. {advice}")
    digest = file_sha256(path)
    if digest != sha256:
        raise FormatError(f"{path}: damaged: expected sha256 {sha256}, found {digest}. {advice}")
