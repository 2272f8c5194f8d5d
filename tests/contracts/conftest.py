import sys
from importlib import import_module

import pytest

from ..builders import command_line


def modules_of_commands():
    return [name for name in sys.modules if name.startswith("elmokit.cli")]


@pytest.fixture
def command(monkeypatch):
    """Run a command in this process; its modules are loaded again, with what was registered."""
    import_module("elmokit.cli")
    for name in modules_of_commands():
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("elmokit.cli")
    yield lambda *words: command_line.elmokit(*words).stdout
    for name in modules_of_commands():
        del sys.modules[name]
