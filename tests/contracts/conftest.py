import sys

import pytest


@pytest.fixture
def command(monkeypatch):
    """Run a command in this process; its modules are loaded again, with what was registered."""
    from typer.testing import CliRunner

    for name in [name for name in sys.modules if name.startswith("elmokit.cli")]:
        monkeypatch.delitem(sys.modules, name)
    from elmokit.cli import app

    def run(*words):
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == 0, result.output
        return result.stdout

    return run
