"""The glossary is true, and no identifier of the package uses a private word."""

import ast
import re
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs/glossary.md"
PRIVATE_WORDS = {
    "arm", "facts", "aside", "whole_file", "at_the_door", "held_alone", "halved", "blame",
}  # fmt: skip
PRIVATE_TYPES = {"Room", "Place"}


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


@cache
def private_words(name):
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)
    lower = "_" + "_".join(word.lower() for word in words) + "_"
    return [word for word in PRIVATE_WORDS if f"_{word}_" in lower or f"_{word}s_" in lower] + [
        word for word in PRIVATE_TYPES if {word, f"{word}s"} & set(words)
    ]


def identifiers(tree):
    for node in ast.walk(tree):
        for field in ("name", "id", "attr", "arg", "asname", "module", "names"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield getattr(node, "lineno", 0), value
            elif isinstance(node, ast.Global | ast.Nonlocal) and field == "names":
                yield from ((node.lineno, name) for name in node.names)


def test_no_identifier_has_a_private_word():
    package = ROOT / "src/elmokit"
    found = [
        f"{path.relative_to(package)}:{line} {name}"
        for path in sorted(package.rglob("*.py"))
        for line, name in identifiers(ast.parse(path.read_text(encoding="utf-8")))
        if private_words(name) or private_words(path.stem)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("name", "word"),
    [("facts_path", "facts"), ("Arms", "arm"), ("read_whole_file", "whole_file"),
     ("Place", "Place"), ("_RoomKey", "Room")],
)  # fmt: skip
def test_private_words_are_found_within_names(name, word):
    assert private_words(name) == [word]
    assert not private_words("warm_place")
