"""Configurations of runs: presets of the package, recipes of the user, single settings.

Modules that need torch are imported inside functions, so that presets are listed without it.
"""

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from elmokit.config import from_dict, merged, read_toml, to_dict
from elmokit.errors import ConfigError, InputError

if TYPE_CHECKING:
    from elmokit.training.pretraining.finetune import FinetuneConfig
    from elmokit.training.pretraining.run import PretrainConfig

_FOLDER = files("elmokit").joinpath("data/presets")
DEFAULT_PRESET = "tiny"
InputKind = Literal["chars", "words"]
"""A model's input: the characters of words, or word embeddings."""


def preset_names() -> list[str]:
    return sorted(path.name.removesuffix(".toml") for path in _FOLDER.iterdir() if path.is_file())


def pretrain_config(
    preset: str | None = None,
    *,
    recipe: Path | None = None,
    input_kind: InputKind | None = None,
    overrides: Sequence[str] = (),
) -> "PretrainConfig":
    """Return defaults < preset < recipe < ``input_kind`` < overrides (dotted ``key=value``).

    ``preset`` and ``input_kind`` default to the recipe's keys `preset` and `input`.
    """
    from elmokit.training.pretraining.run import PretrainConfig

    own = {} if recipe is None else read_toml(recipe)
    base = own.pop("preset", None)
    recipe_input = own.pop("input", "chars")
    if recipe_input not in get_args(InputKind):
        raise ConfigError(f"{recipe}: `input` must be chars or words, got {recipe_input!r}.")
    if preset is not None and base is not None and preset != base:
        raise InputError(f"The preset is {preset!r}, but that of {recipe} is {base!r}.")
    preset = preset or base or DEFAULT_PRESET
    if preset not in (names := preset_names()):
        raise InputError(f"There is no preset {preset!r}; choose one of {', '.join(names)}.")
    text = _FOLDER.joinpath(f"{preset}.toml").read_text(encoding="utf-8")
    settings = merged(merged(to_dict(PretrainConfig()), tomllib.loads(text)), own)
    if (input_kind or recipe_input) == "words":
        # num_words is set from the vocabulary, once there is one
        settings["model"] = {**settings["model"], "char_cnn": None, "num_words": 0}
    source = str(recipe or f"preset {preset}")
    return from_dict(PretrainConfig, settings, source=source, overrides=overrides)


def finetune_config(
    *, recipe: Path | None = None, overrides: Sequence[str] = ()
) -> "FinetuneConfig":
    from elmokit.training.pretraining.finetune import FinetuneConfig

    own = {} if recipe is None else read_toml(recipe)
    settings = merged(to_dict(FinetuneConfig()), own)
    source = str(recipe or "the settings")
    return from_dict(FinetuneConfig, settings, source=source, overrides=overrides)
