"""When a resumed job is still the same: its fixed settings and what it reads have not changed.

`Identity.refuse_changes` is the only place of elmokit that tells two jobs apart.
"""

import dataclasses
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from elmokit.config import from_dict, known_part, to_dict
from elmokit.errors import ConfigError

log = logging.getLogger(__name__)

AUTO = "auto"
"""Leaves a setting to elmokit; in a resumed job it is what the job began with."""
FIXED = {"fixed": True}
"""Metadata of a dataclass field: a resumed job cannot change this setting, nor any below it."""


def fixed_names(settings: Any) -> Iterator[str]:
    """Yield the dotted names of the settings that are `FIXED`; all keys of a mapping are."""
    if isinstance(settings, Mapping):
        yield from settings
        return
    for setting in dataclasses.fields(settings):
        value = getattr(settings, setting.name)
        if setting.metadata == FIXED:
            yield setting.name
        elif dataclasses.is_dataclass(value):
            yield from (f"{setting.name}.{name}" for name in fixed_names(value))


@dataclass(frozen=True, slots=True)
class Change:
    """A value that differs from the recorded one."""

    key: str
    """Dotted, such as ``train.batch_size``."""
    was: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.key} was {self.was!r} and is now {self.now!r}"


def changes(recorded: Mapping[str, Any], present: Mapping[str, Any]) -> list[Change]:
    """Compare nested values as JSON stores them: tuples equal lists, an absent key equals None."""
    was, now = (flattened(json.loads(json.dumps(values))) for values in (recorded, present))
    return [
        Change(key, was.get(key), now.get(key))
        for key in {**was, **now}
        if was.get(key) != now.get(key)
    ]


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values by dotted names, such as ``train.batch_size``."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


@dataclass(frozen=True)
class Identity:
    """What a job is. It is resumed only as long as this stays the same."""

    settings: Any
    """A dataclass whose `FIXED` fields must stay the same, or a mapping, all of which must."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """What the job reads, JSON-able: names and hashes. A ``path`` beside a hash may differ."""

    def record(self) -> dict[str, Any]:
        """Return what is stored."""
        is_mapping = isinstance(self.settings, Mapping)
        settings = dict(self.settings) if is_mapping else to_dict(self.settings)
        return {"config": settings, **self.inputs}

    def refuse_changes(self, record: Mapping[str, Any], source: object, advice: str) -> None:
        """Compare with what `record` returned when the job began; log what may differ.

        Inputs and settings that are newer than the record are not compared, or have their
        defaults; a recorded setting that no longer exists must have been false, none, zero or
        empty. `ConfigError` for the differences that the job cannot be resumed with.
        """
        was, now = record["config"], self.record()["config"]
        if not isinstance(self.settings, Mapping):
            kind = type(self.settings)
            known = known_part(kind, was)
            still = flattened(known)
            gone = [key for key, value in flattened(was).items() if value and key not in still]
            if gone:
                raise ConfigError(f"{source}: this version has no setting `{gone[0]}`. {advice}")
            was = to_dict(from_dict(kind, known, source=str(source)))
        names = list(fixed_names(self.settings))
        refused = []
        for change in sorted(changes(was, now), key=lambda change: change.key):
            is_fixed = any(f"{change.key}.".startswith(f"{name}.") for name in names)
            if not is_fixed:
                log.info("%s", change)
            elif change.now != AUTO:
                refused.append(change)
        known = {key: value for key, value in self.inputs.items() if key in record}
        refused += [
            change
            for change in changes({key: record[key] for key in known}, known)
            if not change.key.endswith(".path")
        ]
        if refused:
            raise ConfigError(
                f"{source}: it is another job: {'; '.join(map(str, refused))}. {advice}"
            )
