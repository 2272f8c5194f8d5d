"""The C kernels under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer.

They run over random shapes and values (`builders/odd_shapes.py`) in a process of their own, which
ends at the first finding. ``ELMOKIT_SANITIZER_CASES`` gives them more.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elmokit.kernels import build
from elmokit.kernels.build import SOURCE_DIR

NUM_CASES = int(os.environ.get("ELMOKIT_SANITIZER_CASES", "80"))
PROGRAM = Path(__file__).parents[2] / "builders/odd_shapes.py"
RUNTIMES = {"address,undefined,float-cast-overflow": ("asan", "ubsan"), "thread": ("tsan",)}
BUGS = {
    "address": ("inference.c", "float before[2 * VL] = {0};", "float before[VL] = {0};"),
    "thread": ("inference.c", "meet(&job->place, num_threads);", ";"),
}  # fmt: skip
"""Sanitizer -> file, code, and the same code with a mistake that it must find. That of undefined
behavior runs with that of addresses."""


def run_cases(sanitizer, num_cases, *, sources=SOURCE_DIR):
    """Run the program with a sanitizer's runtime; skip where there is none."""
    names = next(found for kinds, found in RUNTIMES.items() if sanitizer in kinds)
    compiler = build._compiler()
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler on Linux")
    asked = [[*compiler, f"-print-file-name=lib{name}.so"] for name in names]
    runtimes = [subprocess.check_output(command, text=True).strip() for command in asked]
    if not all(map(os.path.isabs, runtimes)):
        pytest.skip(f"{compiler[0]} has no shared runtime for -fsanitize={sanitizer}")
    return subprocess.run(
        [sys.executable, "-W", "ignore", PROGRAM, sanitizer, str(num_cases), "0", sources],
        capture_output=True, text=True, timeout=570, check=False,
        env={
            **os.environ, "LD_PRELOAD": ":".join(runtimes), "OMP_NUM_THREADS": "1",
            "ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "halt_on_error=1",
            "PYTHONPATH": str(Path(build.__file__).parents[2]),
        },
    )  # fmt: skip


@pytest.mark.parametrize("sanitizer", RUNTIMES)
def test_no_sanitizer_finds_anything(sanitizer):
    done = run_cases(sanitizer, NUM_CASES)
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"'train_lstm': {NUM_CASES // 8}" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", BUGS)
def test_each_sanitizer_finds_a_mistake(sanitizer, tmp_path):
    shutil.copytree(SOURCE_DIR, tmp_path / "c")
    name, right, wrong = BUGS[sanitizer]
    path = tmp_path / "c" / name
    assert right in path.read_text()
    path.write_text(path.read_text().replace(right, wrong))
    done = run_cases(sanitizer, 80, sources=tmp_path / "c")
    finding = {"address": "AddressSanitizer", "thread": "data race"}
    assert done.returncode != 0
    assert finding[sanitizer] in done.stderr
