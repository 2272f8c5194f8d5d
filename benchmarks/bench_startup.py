"""How long a fresh process takes until its first answer: vectors, entities, `elmokit --help`.

    python benchmarks/bench_startup.py [--shapes tiny original] [--repeats 7]
    python benchmarks/bench_startup.py --packaged [--python /path/to/venv/bin/python]

Random models of these shapes are made in the cache folder; `original` is the released 4096 model,
``help`` needs none. --packaged measures what is in the package instead: `en`, `ner-en`,
`ko`, and beside the last Kiwi alone, which takes the most of it; ``numpy`` is its import, the least
that any of them takes. --python is the interpreter of an environment that has elmokit, such as one
without PyTorch. ``process`` is the whole process with interpreter and imports; ``load`` is the call
alone, ``first_sentence`` one short sentence after it, split by the tokenizer.
``peak_mb`` is what Linux says of the process itself: usage of a child begins with its parent's.
Runs take turns; the first, which warms the disk, does not count.
"""

import json
import sys
from typing import Any

from common import SHAPES, alternate, model_folder, new_parser, print_result, run_measured, spread

KOREAN = "나는 은행에서 돈을 찾았다."
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


def rounded(seconds: list[float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in spread(seconds).items()}


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["tiny", "original"])
    parser.add_argument("--precisions", nargs="+", default=["fp32"])
    parser.add_argument("--packaged", action="store_true")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    commands: dict[str, list[str]] = {"help": ["-m", "elmokit", "--help"]}
    if options.packaged:
        models = {name: name for name in ("en", "ner-en", "ko")}
        commands["numpy"] = ["-c", "import numpy"]
        commands["kiwi"] = ["-c", f"from kiwipiepy import Kiwi; Kiwi().tokenize({KOREAN!r})"]
    else:
        models = {shape: str(model_folder(shape) / "model") for shape in options.shapes}
    for name, model in models.items():
        for precision in options.precisions:
            text = KOREAN if name == "ko" else "I sat by the bank ."
            commands[f"{name} {precision}"] = ["-c", LOAD, model, precision, text]
    said: dict[str, list[list[float]]] = {name: [] for name in commands}

    def run(name: str) -> float:
        """Return the seconds of the whole process; keep what it says of itself."""
        done = run_measured([options.python, *commands[name]])
        if LOAD in commands[name]:
            said[name].append(json.loads(done.stdout))
        return done.seconds

    seconds = alternate(commands, run, repeats=options.repeats)
    results: dict[str, Any] = {}
    for name in commands:
        results[name] = {"process": rounded(seconds[name])}
        if said[name]:
            load, first, peak = map(list, zip(*said[name][1:], strict=True))
            results[name] |= {"load": rounded(load), "first_sentence": rounded(first)}
            results[name] |= {"peak_mb": round(max(peak) / 2**10)}
    print_result("startup", {"repeats": options.repeats}, results)


if __name__ == "__main__":
    main()
