"""What several integrations need: the models that they take, and a model's files as bytes."""

from collections.abc import Mapping
from os import PathLike

from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.files.temporary import scratch_directory
from elmokit.weights.model_files import FILE_NAMES
from elmokit.weights.stored_bilm import LoadedBiLM, read_bilm

AnyModel = str | PathLike[str] | LoadedBiLM | None
"""A directory, a name or a loaded model; None is the English model in the package."""


def files_of(embedder: Embedder) -> dict[str, bytes]:
    with scratch_directory("model") as scratch:
        embedder.stored().save(scratch / "saved")
        return {path.name: path.read_bytes() for path in sorted((scratch / "saved").iterdir())}


def embedder_of(files: Mapping[str, bytes]) -> Embedder:
    # names decide where files are written: one such as ../x would leave the scratch directory
    if not isinstance(files, Mapping) or not set(files) <= set(FILE_NAMES):
        raise FormatError(f"No stored biLM, or damaged: it holds only {', '.join(FILE_NAMES)}.")
    with scratch_directory("model") as scratch:
        for name, content in files.items():
            (scratch / name).write_bytes(content)
        return Embedder(read_bilm(scratch))
