"""How long `elmokit --help` and `Embedder.load` take in a fresh process.

    python benchmarks/bench_startup.py [MODEL] [--shapes tiny original] [--repeats 7]

Without MODEL random models of these shapes are made in the cache folder; `original` is the released
4096 model, ``help`` needs none. ``process`` is the whole process with interpreter and imports;
``load`` is the call alone, ``first_sentence`` one short sentence after it, split by the tokenizer.
``peak_mb`` is what Linux says of the process itself: usage of a child begins with its parent's.
Runs take turns; the first, which warms the disk, does not count.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common import Spread, alternate, print_result, run_measured
from inputs import SHAPES, model_folder

PRECISIONS = ("fp32", "bf16", "int8")
LOAD = """
import json, sys, time
import elmokit
elmokit.Embedder
started = time.perf_counter()
embedder = elmokit.Embedder.load(sys.argv[1], precision=sys.argv[2])
loaded = time.perf_counter()
embedder.embed(["I sat by the bank ."])
first = time.perf_counter() - loaded
with open("/proc/self/status", encoding="utf-8") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(json.dumps([loaded - started, first, peak]))
"""


class Loading:
    """Loads a model in a fresh process, and keeps what the process said of itself."""

    def __init__(self, model: Path, precision: str) -> None:
        self.command = [sys.executable, "-c", LOAD, str(model), precision]
        self.said: list[tuple[float, float, int]] = []

    def __call__(self) -> float:
        """Return the seconds of the whole process."""
        done = run_measured(self.command)
        self.said.append(tuple(json.loads(done.stdout)))
        return done.seconds

    def summary(self, seconds: list[float]) -> dict[str, Any]:
        """Return the rounds that count."""
        counted = self.said[-len(seconds) :]
        return {
            "process": rounded(seconds),
            "load": rounded([load for load, _, _ in counted]),
            "first_sentence": rounded([first for _, first, _ in counted]),
            "peak_mb": round(max(peak for _, _, peak in counted) / 2**10),
        }


def rounded(seconds: list[float]) -> dict[str, float]:
    """Return median and extremes to the millisecond."""
    return {name: round(value, 3) for name, value in asdict(Spread.of(seconds)).items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["tiny", "original"])
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=["fp32"])
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    if options.model is not None:
        models = {options.model.name: options.model}
    else:
        models = {shape: model_folder(shape) / "model" for shape in options.shapes}
    program = str(Path(sys.executable).with_name("elmokit"))
    loadings = {
        f"{name} {precision}": Loading(model, precision)
        for name, model in models.items()
        for precision in options.precisions
    }
    runs: dict[str, Callable[[], float]] = {
        "help": lambda: run_measured([program, "--help"]).seconds,
        **loadings,
    }
    seconds = alternate(runs, repeats=options.repeats)
    results = {
        "help": rounded(seconds["help"]),
        **{name: loading.summary(seconds[name]) for name, loading in loadings.items()},
    }
    print_result("startup", {"repeats": options.repeats}, results)


if __name__ == "__main__":
    main()
