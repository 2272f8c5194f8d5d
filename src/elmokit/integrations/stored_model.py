"""A model's files as bytes, for libraries that keep everything of a pipeline in one file."""

from collections.abc import Mapping

from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.files.temporary import scratch_directory
from elmokit.weights.model_dir import load_model
from elmokit.weights.model_files import FILE_NAMES

_NAME = "model"


def files_of(embedder: Embedder) -> dict[str, bytes]:
    """Return the files of the model directory by name."""
    with scratch_directory(_NAME) as scratch:
        embedder.model.save(scratch / _NAME)
        return {path.name: path.read_bytes() for path in sorted((scratch / _NAME).iterdir())}


def embedder_of(files: Mapping[str, bytes]) -> Embedder:
    """Return an embedder with the model of `files_of`.

    Raises:
        FormatError: if these are not the files of a model.
    """
    if not isinstance(files, Mapping) or not set(files) <= set(FILE_NAMES):
        raise FormatError(
            f"A stored biLM holds only {', '.join(FILE_NAMES)}: this one is damaged or not from "
            "elmokit. Copy the file again."
        )
    with scratch_directory(_NAME) as scratch:
        for name, content in files.items():
            (scratch / name).write_bytes(content)
        return Embedder(load_model(scratch))
