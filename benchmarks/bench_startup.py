"""How long a fresh process takes until its first answer: vectors, entities, `elmokit --help`.

    python benchmarks/bench_startup.py [MODEL] [--shapes tiny original] [--repeats 7]
    python benchmarks/bench_startup.py --packaged [--python /path/to/venv/bin/python]

Without MODEL random models of these shapes are made in the cache folder; `original` is the released
4096 model, ``help`` needs none. --packaged measures what is in the package instead: `en`, `ner-en`,
`ko`, and beside the last Kiwi alone, which takes the most of it; ``numpy`` is its import, the least
that any of them takes. --python is the interpreter of an environment that has elmokit, such as one
without PyTorch. ``process`` is the whole process with interpreter and imports; ``load`` is the call
alone, ``first_sentence`` one short sentence after it, split by the tokenizer.
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
TEXTS = {"ko": "나는 은행에서 돈을 찾았다."}
LOAD = """
import json, sys, time
import elmokit
model, precision, text = sys.argv[1:]
is_tagger = model.startswith("ner")
elmokit.TaskRun if is_tagger else elmokit.Embedder
started = time.perf_counter()
if is_tagger:
    answer = elmokit.TaskRun.load(model).predict
else:
    answer = elmokit.Embedder.load(model, precision=precision).embed
loaded = time.perf_counter()
list(answer([text]))
first = time.perf_counter() - loaded
with open("/proc/self/status", encoding="utf-8") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(json.dumps([loaded - started, first, peak]))
"""


ALONE = {
    "numpy": "import numpy",
    "kiwi": f"from kiwipiepy import Kiwi; Kiwi().tokenize({TEXTS['ko']!r})",
}


class Loading:
    """Loads a model in a fresh process, and keeps what the process said of itself."""

    def __init__(self, python: str, model: Path | str, precision: str) -> None:
        text = TEXTS.get(str(model), "I sat by the bank .")
        self.command = [python, "-c", LOAD, str(model), precision, text]
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
    parser.add_argument("--packaged", action="store_true")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    models: dict[str, Path | str]
    if options.packaged:
        models = {name: name for name in ("en", "ner-en", "ko")}
    elif options.model is not None:
        models = {options.model.name: options.model}
    else:
        models = {shape: model_folder(shape) / "model" for shape in options.shapes}
    help_command = [options.python, "-m", "elmokit", "--help"]
    loadings = {
        f"{name} {precision}": Loading(options.python, model, precision)
        for name, model in models.items()
        for precision in options.precisions
    }
    runs: dict[str, Callable[[], float]] = {
        "help": lambda: run_measured(help_command).seconds,
        **loadings,
    }
    for name, code in ALONE.items() if options.packaged else ():
        runs[name] = lambda code=code: run_measured([options.python, "-c", code]).seconds
    seconds = alternate(runs, repeats=options.repeats)
    results = {
        **{name: rounded(seconds[name]) for name in runs if name not in loadings},
        **{name: loading.summary(seconds[name]) for name, loading in loadings.items()},
    }
    print_result("startup", {"repeats": options.repeats}, results)


if __name__ == "__main__":
    main()
