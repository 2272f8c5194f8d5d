"""What the benchmarks share: facts about the machine, measured child processes, one JSON result."""

import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Measured:
    """A finished child process."""

    seconds: float
    peak_bytes: int
    """Largest resident set of the process itself (its children not included)."""
    stdout: str


def run_measured(command: list[str]) -> Measured:
    """Run a command to its end and measure it; its errors go to our stderr.

    Raises:
        RuntimeError: if it fails.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stdout is not None
    with process.stdout:
        stdout = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"exit code {process.returncode}: {' '.join(command)}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Measured(time.perf_counter() - start, usage.ru_maxrss * unit, stdout)


def print_result(name: str, sizes: dict[str, Any], results: dict[str, Any]) -> None:
    """Print one JSON object: what ran, on what, and what came out."""
    import torch

    import elmokit

    facts = {
        "benchmark": name,
        "command": " ".join([Path(sys.executable).name, *sys.argv]),
        "commit": _commit(),
        "hardware": {"processor": _processor(), "cores": os.cpu_count()},
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "elmokit": elmokit.__version__,
        },
        "sizes": sizes,
        "results": results,
    }
    print(json.dumps(facts, indent=2, ensure_ascii=False))


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), "")
