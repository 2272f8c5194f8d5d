"""Pre-training configurations: presets of the package, recipes of the user, single settings."""

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from elmokit.config import apply_overrides, from_dict, read_toml
from elmokit.training.pretrain import PretrainConfig

PRESETS = ("toy", "tiny", "small", "medium", "original")


def pretrain_config(
    preset: str = "tiny", *, recipe: Path | None = None, overrides: Sequence[str] = ()
) -> PretrainConfig:
    """Return a configuration: defaults < preset < recipe < overrides.

    Args:
        preset: One of `PRESETS`.
        recipe: A TOML file; its key ``preset`` chooses another preset to build on.
        overrides: Dotted ``key=value`` settings.

    Raises:
        ValueError: for an unknown preset.
        ConfigError: for unknown keys or refused values.
    """
    own = {} if recipe is None else read_toml(recipe)
    preset = own.pop("preset", preset)
    if preset not in PRESETS:
        raise ValueError(f"There is no preset {preset!r}; choose one of {', '.join(PRESETS)}.")
    text = files("elmokit").joinpath(f"data/presets/{preset}.toml").read_text(encoding="utf-8")
    merged = apply_overrides(_merge(tomllib.loads(text), own), overrides)
    return from_dict(PretrainConfig, merged, source=str(recipe) if recipe else f"preset {preset}")


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return ``base`` with the tables of ``over`` laid over it."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged
