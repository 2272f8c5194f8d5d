"""Run the tests that need no PyTorch with the lowest or the newest versions of what elmokit needs.

    python recipes/versions.py lowest
    python recipes/versions.py newest

The lowest are the bounds in pyproject.toml; the newest are what pip chooses without
constraints.txt. The environment is made in a temporary directory. Prints the versions, the date and
what pytest says.
"""

import argparse
import datetime
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "beartype", "jaxtyping>=0.3.11", "scipy")
TESTS = (
    "tests/project/test_without_torch.py", "tests/unit/embed", "tests/unit/evaluation",
    "tests/unit/inspection", "tests/unit/text", "tests/unit/weights",
)  # fmt: skip


def main() -> int:
    """Make the environment and run the tests; return pytest's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=("lowest", "newest"))
    which = parser.parse_args().which
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names: list[str] = project["dependencies"]
    wanted = names if which == "newest" else [name.replace(">=", "==") for name in names]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = [f"{folder}/bin/python", "-m"]
        pip = [*python, "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, *wanted, *TOOLS], check=True)
        subprocess.run([*pip, "--no-deps", "-e", ROOT], check=True)
        listed = subprocess.check_output([*python, "pip", "list", "--format=freeze"], text=True)
        known = {re.split(r"[<>=]", requirement)[0] for requirement in wanted}
        rows = [line for line in listed.splitlines() if line.partition("==")[0] in known]
        print(f"{datetime.date.today()}, Python {sys.version.split()[0]}: {', '.join(rows)}")
        tests = [*python, "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "-m", "not gpu"]
        return subprocess.run([*tests, *TESTS], check=False, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
