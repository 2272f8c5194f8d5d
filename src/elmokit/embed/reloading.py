"""Whether a model directory is still the one that an embedder was loaded from."""

from pathlib import Path

from elmokit.errors import FormatError


def directory_signature(model_dir: Path) -> list[tuple[int, ...]]:
    """Return values that change when a file of a model directory is replaced."""
    found = [path.stat() for path in sorted(model_dir.glob("*")) if path.is_file()]
    return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]


def check_unchanged(model_dir: Path, signature: list[tuple[int, ...]]) -> None:
    """Raise `FormatError` if a file was replaced since `directory_signature` was taken."""
    if directory_signature(model_dir) != signature:
        raise FormatError(
            f"{model_dir} has changed since this embedder was loaded from it. Load a new one: "
            "Embedder.load(...)."
        )
