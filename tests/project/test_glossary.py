"""The glossary lists settings that exist, and its terms in order."""

import re
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs/glossary.md"


def settings_of(config, prefix=""):
    """The settings of a configuration and of all dataclasses in it, with dots."""
    for name, kind in get_type_hints(config).items():
        if name not in {field.name for field in fields(config)}:
            continue
        yield prefix + name
        for inner in (kind, *get_args(kind)):
            if is_dataclass(inner):
                yield from settings_of(inner, f"{prefix}{name}.")


@cache
def listed_settings():
    section = GLOSSARY.read_text(encoding="utf-8").split("## Settings")[1]
    _, pretraining, tasks = re.split(r"^\| Setting .*$", section, flags=re.MULTILINE)
    return [re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE) for table in (pretraining, tasks)]


def test_every_listed_setting_exists():
    from elmokit.tasks.runs.config import TaskRunConfig
    from elmokit.training.pretraining.pretrain import PretrainConfig

    for config, listed in zip((PretrainConfig, TaskRunConfig), listed_settings(), strict=True):
        assert len(listed) > 10
        assert sorted(set(listed) - set(settings_of(config))) == []


def test_terms_are_in_alphabetical_order():
    groups = re.split(r"^## .*$", GLOSSARY.read_text(encoding="utf-8"), flags=re.MULTILINE)
    tables = [table for group in groups for table in re.split(r"^\| ?-.*$", group, flags=re.M)]
    for table in tables:
        terms = [
            re.sub(r"[`_]", "", term).casefold()
            for term in re.findall(r"^\| (.+?) \|", table, re.M)
        ]
        named = [term for term in terms if term not in {"term", "name", "setting"}]
        assert named == sorted(named)
