"""The repository is clean under its own tools."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def _run(repository_dir, tool, *arguments):
    program = shutil.which(tool, path=str(Path(sys.executable).parent)) or shutil.which(tool)
    if program is None:
        pytest.skip(f'{tool} is not installed: pip install -e ".[test]"')
    return subprocess.run(
        [program, *arguments], cwd=repository_dir, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("ruff", ["check", "--no-cache"]),
        ("ruff", ["format", "--check", "--no-cache"]),
        ("pyright", ["--pythonpath", sys.executable]),
        ("codespell", []),
    ],
    ids=["ruff check", "ruff format", "pyright", "codespell"],
)
def test_the_tools_find_nothing(repository_dir, tool, arguments):
    result = _run(repository_dir, tool, *arguments)
    assert result.returncode == 0, (result.stdout + result.stderr)[-5000:]
