"""Run the tests that need no PyTorch with the lowest or the newest versions of what elmokit needs.

    python recipes/versions.py lowest
    python recipes/versions.py newest

The lowest are the bounds in pyproject.toml; the newest are what pip chooses without
constraints.txt. The environment is made in a temporary directory. Prints the versions, the date and
what pytest says.
"""

import datetime
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Literal, get_args

ROOT = Path(__file__).resolve().parents[1]
Which = Literal["lowest", "newest"]
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "beartype", "jaxtyping>=0.3.11", "scipy")
TESTS = (
    "tests/project/test_without_torch.py", "tests/unit/embed", "tests/unit/evaluation",
    "tests/unit/inspection", "tests/unit/text", "tests/unit/weights",
)  # fmt: skip


def requirements(which: Which) -> list[str]:
    """Return the core dependencies as pip takes them, pinned to their bounds for ``lowest``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names: list[str] = project["dependencies"]
    return names if which == "newest" else [name.replace(">=", "==") for name in names]


def main(which: str) -> int:
    """Make the environment and run the tests; return pytest's exit code."""
    if which not in get_args(Which):
        raise SystemExit(__doc__)
    wanted = requirements(which)  # pyright: ignore[reportArgumentType]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = f"{folder}/bin/python"
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, *wanted, *TOOLS], check=True)
        subprocess.run([*pip, "--no-deps", "-e", ROOT], check=True)
        listed = subprocess.run(
            [python, "-m", "pip", "list", "--format=freeze"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        names = {re.split(r"[<>=]", requirement)[0] for requirement in wanted}
        rows = [line for line in listed.splitlines() if line.partition("==")[0] in names]
        print(f"{datetime.date.today()}, Python {sys.version.split()[0]}: {', '.join(rows)}")
        tests = [python, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "-m", "not gpu"]
        return subprocess.run([*tests, *TESTS], check=False, cwd=ROOT).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1] if len(sys.argv) == 2 else ""))
