"""JSON files that elmokit writes and reads back: metadata, manifests, configurations."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError
from elmokit.files.atomic import atomic_file


def write_json(path: Path, data: object, *, indent: int | None = 1) -> None:
    """Write a JSON file, whole or not at all. Non-ASCII text stays readable."""
    with atomic_file(path) as temp_path:
        text = json.dumps(data, indent=indent, ensure_ascii=False) + "\n"
        temp_path.write_bytes(text.encode("utf-8", "surrogatepass"))  # of names that are not UTF-8


def read_json(path: Path, *, advice: str, required: Iterable[str] = ()) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    Args:
        path: The file.
        advice: What to do about a damaged file; ends the message.
        required: Keys that the object must have.

    Raises:
        FormatError: if the file is missing, is not UTF-8 JSON, is nested too deeply, holds
            something other than an object or lacks a key.
        OSError: if it cannot be read for another reason, such as missing permission.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise FormatError(f"{path} is missing. {advice}") from error
    return parse_json(data, source=path, advice=advice, required=required)


def parse_json(
    data: bytes | str, *, source: object, advice: str, required: Iterable[str] = ()
) -> dict[str, Any]:
    """Parse one JSON object; see `read_json`.

    Args:
        data: UTF-8 text.
        source: Where it was found; begins the message.
        advice: What to do about damage.
        required: Keys that the object must have.

    Raises:
        FormatError: as `read_json`.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{source}: damaged, not valid JSON: {error}. {advice}") from error
    if not isinstance(value, dict):
        raise FormatError(
            f"{source}: damaged: expected a JSON object, got {type(value).__name__}. {advice}"
        )
    missing = sorted(set(required) - value.keys())
    if missing:
        raise FormatError(f"{source}: damaged: it lacks `{'`, `'.join(missing)}`. {advice}")
    return value
