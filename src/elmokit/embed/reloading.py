"""A model directory that must still hold the model that an embedder was loaded from."""

from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import FormatError


@dataclass(frozen=True)
class ModelSource:
    """A model directory, and the fingerprint of the model in it."""

    model_dir: Path
    """Absolute."""
    fingerprint: str

    def check(self, fingerprint: str) -> None:
        """Check the fingerprint of what the directory holds now.

        Raises:
            FormatError: if it is that of another model.
        """
        if fingerprint != self.fingerprint:
            raise FormatError(
                f"{self.model_dir} has changed since this embedder was loaded from it. Load a new "
                "one: Embedder.load(...)."
            )
