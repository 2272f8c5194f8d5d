"""Small files, well formed, that mean gigabytes: refused with little memory and time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..builders.bombs import BOMBS

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(os.name != "posix", reason="needs fork")]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def readings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")
    command = [sys.executable, "-m", "tests.builders.bombs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_little_memory_and_time(name, readings):
    reading = readings[name]
    assert reading["ended"].startswith("refused: "), reading
    assert name in reading["ended"]  # the folder of the file
    assert reading["peak"] <= 2 * reading["bytes"] + 500 * 2**20, reading
    assert reading["seconds"] <= 5, reading
