"""Speed of `elmokit surprisal`, and whether its mean is the perplexity of `elmokit perplexity`.

    python benchmarks/bench_surprisal.py MODEL TEXT [--threads 2] [--top 0]

Runs `elmokit surprisal MODEL TEXT -o FILE.tsv` and `elmokit perplexity MODEL TEXT` as commands and
prints one JSON object: rows a second of the whole command, loading and tokenizing included; of its
processor time, which other work on the machine changes less; and the largest relative difference of
2 to the mean of a column from the perplexity of the same direction.
"""

import argparse
import csv
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import print_result, run_measured


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("text", type=Path, nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--top", type=int, default=0)
    arguments = parser.parse_args()
    elmokit = [sys.executable, "-m", "elmokit"]
    given = [arguments.model, *map(str, arguments.text), "--threads", str(arguments.threads)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.tsv"
        before = os.times()
        command = [*elmokit, "surprisal", *given, "--top", str(arguments.top), "-o", str(path)]
        surprisal = run_measured(command)
        after = os.times()
        num_rows, means = read_means(path)
    processor = after.children_user + after.children_system
    processor -= before.children_user + before.children_system
    perplexity = run_measured([*elmokit, "perplexity", *given, "--json"])
    told = json.loads(perplexity.stdout)
    results: dict[str, Any] = {
        "rows_per_second": round(num_rows / surprisal.seconds),
        "rows_per_processor_second": round(num_rows / processor),
        "seconds": round(surprisal.seconds, 1),
        "processor_seconds": round(processor, 1),
        "perplexity_seconds": round(perplexity.seconds, 1),
        "peak_megabytes": round(surprisal.peak_bytes / 1e6),
        "largest_relative_difference": max(
            abs(2 ** means[way] / told[way] - 1) for way in ("forward", "backward")
        ),
    }
    sizes = {"rows": num_rows, "threads": arguments.threads, "top": arguments.top}
    print_result("surprisal", sizes | {"perplexity": told["mean"]}, results)


def read_means(path: Path) -> tuple[int, dict[str, float]]:
    """Return the number of rows of a TSV file and the means of both directions, in bits."""
    sums, num_rows = {"forward": 0.0, "backward": 0.0}, 0
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            num_rows += 1
            for way in sums:
                sums[way] += float(row[way])
    return num_rows, {way: total / num_rows for way, total in sums.items()}


if __name__ == "__main__":
    main()
