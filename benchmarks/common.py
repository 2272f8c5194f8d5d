"""What the benchmarks share: the schedule, spread and ratios, the machine, results."""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Spread:
    """Median and extremes of repeated measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Summarize at least one value."""
        return cls(statistics.median(values), min(values), max(values))


def alternate(
    programs: Mapping[str, Callable[[], float]],
    *,
    repeats: int,
    warm_ups: int = 1,
) -> dict[str, list[float]]:
    """Run the programs in turn, A B C A B C …, so that a slow minute of the machine hits all alike.

    Args:
        programs: Each runs once when it is called, and returns its seconds.
        repeats: Rounds that count.
        warm_ups: Rounds before them that do not.

    Returns:
        The seconds of every program, a round each.
    """
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for done in range(warm_ups + repeats):
        for name, run in programs.items():
            taken = run()
            if done >= warm_ups:
                seconds[name].append(taken)
    return seconds


def speed_ratio(seconds: Sequence[float], of_other: Sequence[float]) -> Spread:
    """Return how many times as fast as another program one is: the other's seconds over its own.

    The ratio is taken within each round, where both met the same machine.
    """
    return Spread.of([theirs / own for own, theirs in zip(seconds, of_other, strict=True)])


def throughputs(seconds: Mapping[str, Sequence[float]], tokens: int) -> dict[str, dict[str, float]]:
    """Return the tokens a second of every program, with their spread."""
    return {
        name: asdict(Spread.of([tokens / second for second in times]))
        for name, times in seconds.items()
    }


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

    described = {
        "benchmark": name,
        "command": _command(),
        "date": date.today().isoformat(),
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
    print(json.dumps(described, indent=2, ensure_ascii=False))


def _command() -> str:
    """Return the command line; of folders outside the repository only the last name."""
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    return " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words])


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    """Return name and model number: virtual machines give one name to unlike processors."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    fields = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    name, number = fields.get("model name", ""), fields.get("model")
    return f"{name} (model {number})" if number else name


def speed_table(found: Mapping[str, Any], compared: Sequence[str]) -> str:
    """Return measured programs as a table: tokens per second, ratios."""
    headers = ["program", "tokens/s", "lowest–highest", *(f"× {c}" for c in compared)]
    rows = []
    for name, speed in found["tokens_per_second"].items():
        ratios = found["ratios"].get(name, {})
        rows.append(
            [
                name,
                f"{speed['median']:,.0f}",
                f"{speed['low']:,.0f}–{speed['high']:,.0f}",
                *(f"{ratios[c]['median']:.1f}" if c in ratios else "–" for c in compared),
            ]
        )
    lines = [headers, ["---"] * len(headers), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
