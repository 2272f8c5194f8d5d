"""How long `elmokit --help` and `Embedder.load` take in a fresh process.

    python benchmarks/bench_startup.py [MODEL] [--repeats 7]

Without MODEL a random one of the tiny preset's shape is made. Loading counts the imports.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from common import print_result, run_measured

LOAD = "import elmokit, sys; elmokit.Embedder.load(sys.argv[1])"


def write_tiny_model(path: Path) -> None:
    """Write a model directory of the tiny preset's shape with fresh weights."""
    from elmokit import PretrainedBiLM
    from elmokit.training.presets import pretrain_config

    PretrainedBiLM(pretrain_config("tiny").model).save(path)


def median_seconds(command: list[str], repeats: int) -> dict[str, float]:
    """Run the command once to warm up, then measure."""
    run_measured(command)
    seconds = [run_measured(command).seconds for _ in range(repeats)]
    return {
        "median": round(statistics.median(seconds), 3),
        "min": round(min(seconds), 3),
        "max": round(max(seconds), 3),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model
        if model is None:
            model = Path(folder) / "model"
            write_tiny_model(model)
        program = str(Path(sys.executable).with_name("elmokit"))
        results = {
            "help": median_seconds([program, "--help"], options.repeats),
            "load": median_seconds([sys.executable, "-c", LOAD, str(model)], options.repeats),
        }
    print_result("startup", {"repeats": options.repeats}, results)


if __name__ == "__main__":
    main()
