"""JSON files: metadata, manifests, configurations."""

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError
from elmokit.files.atomic import atomic_file
from elmokit.files.lines import MAX_SETTINGS_BYTES, read_bounded, text_of_line


def write_json(path: Path, value: object, *, indent: int | None = 1) -> None:
    """Write a JSON file atomically. Non-ASCII text stays readable."""
    with atomic_file(path) as temp_path:
        temp_path.write_bytes(json_bytes(value, indent=indent))


def json_bytes(value: object, *, indent: int | None = 1) -> bytes:
    """Return the content of a JSON file."""
    text = json.dumps(value, indent=indent, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "surrogatepass")  # file names may not be UTF-8


def is_json(text: str | bytes, kind: type) -> bool:
    """Tell whether a text is JSON of a kind: ``dict`` for an object, ``list``."""
    try:
        return isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        return False


def begins_json_list(line: str | bytes) -> bool:
    """Tell whether the first line of a file begins a JSON list of records, or is one."""
    bracket = b"[" if isinstance(line, bytes) else "["
    return line.strip() == bracket or is_json(line, list)  # pyright: ignore[reportOperatorIssue]


def jsonable(value: Any) -> Any:
    """Return dataclasses, arrays, paths and collections as JSON has them; NaN is null."""
    if dataclasses.is_dataclass(value):
        return {f.name: jsonable(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy and torch, arrays and scalars
        return jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_json(path: Path, *, advice: str, required: Iterable[str] = ()) -> dict[str, Any]:
    """Read a file of one JSON object with the ``required`` keys; ``advice`` ends error messages."""
    try:
        content = read_bounded(path, MAX_SETTINGS_BYTES)
    except FileNotFoundError as error:
        raise FormatError(f"{path} is missing. {advice}") from error
    return parse_json(content, source=path, advice=advice, required=required)


def parse_json(
    content: bytes | str, *, source: object, advice: str, required: Iterable[str] = ()
) -> dict[str, Any]:
    """Parse one JSON object as `read_json` does; ``source`` begins error messages."""
    # `json` would also take UTF-16
    if isinstance(content, bytes) and not json.detect_encoding(content).startswith("utf-8"):
        text_of_line(content, source, None, reason=advice)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{source}: damaged, not valid JSON: {error}. {advice}") from error
    problem = None
    if not isinstance(value, dict):
        problem = f"expected a JSON object, got {type(value).__name__}"
    elif missing := sorted(set(required) - value.keys()):
        problem = f"it lacks `{'`, `'.join(missing)}`"
    if problem is not None:
        raise FormatError(f"{source}: damaged: {problem}. {advice}")
    return value
