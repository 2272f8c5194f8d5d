"""How much faster `vocab` and shards are with `--workers 2` than with one process.

    python benchmarks/bench_workers.py --text en.txt [--tokenizer simple] [--workers 2]

Every run is a process of its own, in turns; results must have the same bytes. ``times one process``
is by the clock, which says something only if as many cores are free as there are workers;
``by processor time`` is what such a machine could reach at best: the processor's seconds with one
process, times workers, over those with workers, the start of their processes included.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import Spread, alternate, print_result, speed_ratio

SHARDS = """
import sys
from pathlib import Path
from elmokit.corpus.text_shards import TextConfig, TextShards
from elmokit.files.sources import describe_files, find_files
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.worker_processes import Workers
if __name__ == "__main__":
    text, output, tokenizer, workers = sys.argv[1:]
    config = TextConfig(tokenizer=TokenizerConfig(name=tokenizer))
    shards = TextShards(config, "plain-1", workers=Workers(int(workers)))
    shards.make(describe_files(find_files(text)), Path(output), held_out_dir=Path(output + "-held"))
"""


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--tokenizer", default="simple")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    results = {}
    for what in ("vocab", "shards"):
        processor: dict[int, list[float]] = {1: [], given.workers: []}
        hashes = set()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "shards.py").write_text(SHARDS)

            def run(workers: int, what: str = what, folder: Path = folder) -> float:
                output = folder / f"{what}-{workers}-{len(processor[workers])}"  # noqa: B023
                text, tokenizer, count = str(given.text), given.tokenizer, str(workers)
                command = {
                    "vocab": ["-m", "elmokit", "vocab", text, "-o", str(output),
                              "--tokenizer", tokenizer, "--workers", count],
                    "shards": [str(folder / "shards.py"), text, str(output), tokenizer, count],
                }[what]  # fmt: skip
                before, begun = os.times(), time.perf_counter()
                subprocess.run([sys.executable, *command], check=True, capture_output=True)
                seconds, after = time.perf_counter() - begun, os.times()
                processor[workers].append(sum(after[2:4]) - sum(before[2:4]))  # noqa: B023
                hashes.add(digest(folder, output.name))  # noqa: B023
                return seconds

            seconds = alternate(
                {"one": lambda: run(1), "many": lambda: run(given.workers)},
                repeats=given.repeats, warm_ups=0,
            )  # fmt: skip
        if len(hashes) != 1:
            raise AssertionError(f"{what}: the bytes differ")
        by_processor = [
            given.workers * alone / many
            for alone, many in zip(processor[1], processor[given.workers], strict=True)
        ]
        results[what] = {
            "times one process": vars(speed_ratio(seconds["many"], seconds["one"])),
            "by processor time": vars(Spread.of(by_processor)),
            "processor seconds": {n: Spread.of(taken).median for n, taken in processor.items()},
            "bytes": "equal",
        }
    sizes = {"tokenizer": given.tokenizer, "bytes": given.text.stat().st_size}
    print_result("workers", {**sizes, "workers": given.workers, "load": os.getloadavg()}, results)


def digest(folder: Path, name: str) -> str:
    """Hash the files of an output, and those held out."""
    files = [one for one in sorted(folder.rglob("*")) if one.is_file() and name in str(one)]
    return hashlib.sha256(b"".join(one.read_bytes() for one in files)).hexdigest()


if __name__ == "__main__":
    main()
