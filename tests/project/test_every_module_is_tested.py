"""Every module of the package is named in a test, or one that is named uses it.

Members of a family are those of a folder with a `registry`: tests take them from there. A command
counts as named if a test runs it.
"""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src/elmokit"


def modules():
    """Dotted name of each module -> its text."""
    paths = [path for path in PACKAGE.rglob("*.py") if not path.name.startswith("__")]
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path.read_text("utf-8")
        for path in paths
    }


def names_in(text):
    """Dotted names that a text imports."""
    names = set(re.findall(r"\belmokit(?:\.\w+)+", text))
    for module, imported in re.findall(r"from (elmokit[\w.]*) import ([\w, ]+)", text):
        names |= {f"{module}.{name.strip()}" for name in imported.split(",")}
    return names


def untested(modules):
    named = set()
    for path in set(TESTS.rglob("*.py")) - {Path(__file__)}:
        text = path.read_text(encoding="utf-8")
        named |= names_in(text)
        for command in re.findall(r'(?:\(\s*|^    )"([a-z][a-z-]+)(?:",| )', text, re.MULTILINE):
            named.add(f"elmokit.cli.commands.{command.replace('-', '_')}")
    used = set().union(*(names_in(modules[name]) for name in named & modules.keys()))
    return [
        name
        for name in modules
        if name not in named | used and f"{name.rpartition('.')[0]}.registry" not in named
    ]


def test_every_module_is_named_in_a_test_or_used_by_one_that_is():
    assert len(modules()) > 100
    assert untested(modules()) == []
