"""How fast pre-training is while another process keeps a core busy: threads and how they wait.

    python benchmarks/bench_shared_cores.py [--preset toy] [--tokens 6000] [--repeats 3] [--busy 1]

Each run is an `elmokit pretrain` in a process of its own, on the demo text. ``spinning`` waits as
OpenMP does by default, ``passive`` sleeps at once, ``ours`` is what `elmokit` sets;
``automatic`` also leaves the number of threads to it. Runs take turns, a run takes 20 s at most;
ratios are speeds relative to one thread in the same round. ``--busy 0`` starts no other process,
for a machine that is idle (what our waiting costs there) or busy anyway.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from common import Spread, alternate, print_result, speed_ratio

TEXT = Path(__file__).parents[1] / "src/elmokit/data/demo/en.txt"
SPINNING = {"GOMP_SPINCOUNT": "300000"}
PASSIVE = {"OMP_WAIT_POLICY": "passive"}
BASE = "1 thread"
PROGRAMS: dict[str, tuple[dict[str, str], list[str]]] = {
    BASE: ({}, ["--threads", "1"]),
    "2 threads, spinning": (SPINNING, ["--threads", "2"]),
    "2 threads, passive": (PASSIVE, ["--threads", "2"]),
    "2 threads, ours": ({}, ["--threads", "2"]),
    "automatic": ({}, []),
}
"""Name -> environment, arguments."""
OURS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
"""Variables that each program sets itself."""
BUSY = "while True: pass"


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep ``count`` cores busy meanwhile."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(process.kill)
        yield


def program(
    name: str, corpus: Path, options: argparse.Namespace, seconds_at_most: float
) -> Callable[[], float]:
    """Return a function that trains once and returns the seconds of the updates."""
    environment, arguments = PROGRAMS[name]
    inherited = {key: value for key, value in os.environ.items() if key not in OURS}

    def run() -> float:
        with tempfile.TemporaryDirectory() as folder:
            command = [
                sys.executable, "-m", "elmokit", "pretrain", str(corpus), "-o", f"{folder}/run",
                "--preset", options.preset, "--tokens", str(options.tokens), "--json",
                "--minutes", str(seconds_at_most / 60), *arguments,
            ]  # fmt: skip
            done = subprocess.run(
                command, env={**inherited, **environment}, stdout=subprocess.PIPE, check=True,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
        progress = json.loads(done.stdout)["progress"]
        return progress["seconds"] * options.tokens / progress["tokens"]

    return run


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="toy")
    parser.add_argument("--tokens", type=int, default=6000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--busy", type=int, default=1, help="other processes that are started")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    options = parser.parse_args()
    names = [BASE, *(name for name in options.only if name != BASE)]
    with tempfile.TemporaryDirectory() as folder, busy_processes(options.busy):
        corpus = Path(folder, "text.txt")
        corpus.write_text("\n".join(TEXT.read_text(encoding="utf-8").splitlines()[:300]))
        programs = {name: program(name, corpus, options, 20.0) for name in names}
        seconds = alternate(programs, repeats=options.repeats, warm_ups=0)
    results = {
        name: {
            "tokens_per_second": round(options.tokens / Spread.of(taken).median),
            f"times {BASE}": round(speed_ratio(taken, seconds[BASE]).median, 2),
        }
        for name, taken in seconds.items()
    }
    sizes = {"preset": options.preset, "tokens": options.tokens, "repeats": options.repeats}
    print_result("shared_cores", {**sizes, "busy": options.busy, "load": os.getloadavg()}, results)


if __name__ == "__main__":
    main()
