import sys

import pytest


def take_commands():
    """Remove the modules of the command line, and return them."""
    names = [name for name in sys.modules if name.startswith("elmokit.cli")]
    return {name: sys.modules.pop(name) for name in names}


@pytest.fixture
def command():
    """Run a command in this process; its modules are loaded again, with what was registered."""
    from typer.testing import CliRunner

    import elmokit.cli

    before = take_commands()
    from elmokit.cli import app

    def run(*words):
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == 0, result.output
        return result.stdout

    yield run
    take_commands()
    sys.modules.update(before)
    elmokit.cli = before["elmokit.cli"]
