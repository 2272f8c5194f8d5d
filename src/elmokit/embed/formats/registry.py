"""The formats of embedding files: how one is chosen, written and read.

A format is a line in `FORMATS` and a module of this package with ``read_metadata(path)``, which
returns JSON, a function and a class. ``write(path, blocks, metadata, *, num_bytes)`` writes a whole
file from lists of rows, replacing ``path``; after an error it is unusable. In ``metadata``,
``format``, ``layers``, ``num_layers``, ``dim``, ``dtype`` and ``pool`` set the layout of some
formats; ``num_bytes`` is the approximate size of the file. ``Reader(path)`` has ``indices``, the
rising line numbers of its sentences, ``names``, their keys (None: the numbers), ``read(position)``,
iteration, and ``close()``, and may raise anything for a damaged file; formats of one suffix share
it. No heavy imports: `embed --help` reads this.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from elmokit.config import known_part, parse_record
from elmokit.errors import FormatError, InputError
from elmokit.files.json_files import parse_json
from elmokit.files.sources import damage
from elmokit.weights.card import EMBEDDINGS, ResultKind

REPLACE_ADVICE = "Remove it, or replace it with --overwrite."
"""What to do with an output that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class _KnownMetadata:
    kind: ResultKind = EMBEDDINGS
    num_sentences: int = 0
    num_words: int = 0
    text_sha256: str | None = None
    pool: str | None = None


@dataclass(frozen=True)
class OutputFormat:
    name: str
    """Value of ``--format``; a name may have a format per suffix."""
    suffixes: tuple[str, ...]
    module_name: str
    """In this package; several formats may share one."""
    help: str
    all_layers_only: bool = False
    """Readers of the format expect all layers."""

    @property
    def module(self) -> Any:
        """The module, imported on first use."""
        return import_module(f"elmokit.embed.formats.{self.module_name}")


HDF5_SUFFIXES = (".h5", ".hdf5")
FORMATS = (
    OutputFormat("elmokit", HDF5_SUFFIXES, "hdf5", "HDF5"),
    OutputFormat("elmokit", (".parquet",), "parquet", "a row per sentence"),
    OutputFormat("elmokit", (".npz",), "npz", "NumPy archive, up to some 100,000 sentences"),
    OutputFormat("bilm-tf", HDF5_SUFFIXES, "hdf5", "HDF5 as the original wrote it", True),
    OutputFormat("allennlp", HDF5_SUFFIXES, "hdf5", "HDF5 with sentence_to_index"),
)


def suffixes(name: str | None = None) -> list[str]:
    """Return the suffixes of a format, by default of all."""
    formats = [one for one in FORMATS if name in (None, one.name)]
    return list(dict.fromkeys(suffix for one in formats for suffix in one.suffixes))


def describe_formats() -> str:
    """Return every format with its suffixes, for help texts."""
    return "; ".join(f"{one.name}: {'/'.join(one.suffixes)} ({one.help})" for one in FORMATS)


def find_format(path: Path, name: str | None = None) -> OutputFormat:
    """Find a format by suffix and name; without a name, the first of those that share a reader."""
    names = list(dict.fromkeys(one.name for one in FORMATS))
    if name not in (None, *names):
        raise InputError(f"`format` must be one of {', '.join(names)}, got {name!r}.")
    for one in FORMATS:
        if name in (None, one.name) and path.suffix.lower() in one.suffixes:
            return one
    what = "its name" if name is None else f"the name of a file of the format {name!r}"
    raise InputError(f"{path}: {what} must end in {' or '.join(suffixes(name))}.")


def read_metadata(path: Path, *, advice: str = REPLACE_ADVICE) -> dict[str, Any]:
    """Read how an embedding file was made; ``advice`` ends the messages of errors."""
    metadata = read_any_metadata(path, advice=advice)
    if (kind := metadata.get("kind", EMBEDDINGS)) != EMBEDDINGS:
        raise FormatError(f"{path} is not an embedding file: it holds {kind}. {advice}")
    return metadata


def read_any_metadata(path: Path, *, advice: str = REPLACE_ADVICE) -> dict[str, Any]:
    """As `read_metadata`, of any file that elmokit writes in these formats."""
    module = find_format(path).module
    path.open("rb").close()  # system errors name the path here, but not in the libraries
    try:
        with damage(path, "", what="damaged, or not an embedding file of elmokit"):
            text = module.read_metadata(path)
    except FormatError as error:
        raise FormatError(f"{str(error).strip()} {advice}") from error
    metadata = parse_json(text, source=path, advice=advice)
    known = known_part(_KnownMetadata, metadata)
    parse_record(_KnownMetadata, known, source=f"{path}: metadata", advice=advice)
    return metadata
