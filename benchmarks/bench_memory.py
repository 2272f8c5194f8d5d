"""Peak memory of `elmokit embed` or `elmokit pretrain` on a corpus and on one eight times as long.

    python benchmarks/bench_memory.py embed [--preset tiny|small] [--suffix .h5|.parquet|.npz]
    python benchmarks/bench_memory.py pretrain [--preset toy|tiny] [--words N]

The text is drawn from a Zipf distribution over made-up words; new ones keep coming, as in real
text. Weights are random, pre-training runs one epoch and predicts the 5,000 most frequent words,
whatever the text. Exit code 1 if the longer corpus needs more than 10 % above the shorter.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from common import model_folder, new_parser, print_result, run_measured

FACTOR, MAX_GROWTH = 8, 1.10


def write_text(path: Path, *, num_words: int) -> None:
    """Write sentences of 1 to 45 words, 23 on average; a longer text begins like a shorter one."""
    random = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        while num_words > 0:
            length = min(num_words, int(random.integers(1, 46)))
            ranks = random.zipf(1.25, length) % 10**7 + 1
            # a word is its rank, so frequent words are short
            file.write(" ".join(np.base_repr(rank, 36) for rank in ranks.tolist()) + "\n")
            num_words -= length


def main() -> None:
    """Run the command on both texts, judge, print."""
    parser = new_parser(__doc__)
    parser.add_argument("command", choices=["embed", "pretrain"])
    parser.add_argument("--preset", help="embed: tiny, small; pretrain: toy, tiny")
    parser.add_argument("--words", type=int, default=100_000, help="of the shorter text")
    parser.add_argument("--suffix", choices=[".h5", ".parquet", ".npz"], default=".h5")
    options = parser.parse_args()
    if options.command == "embed":
        model = model_folder(options.preset or "tiny") / "model"
        settings = ["--model", str(model), "--overwrite"]
    else:
        options.suffix = ""
        settings = ["--preset", options.preset or "toy", "--tokenizer", "whitespace"]
        settings += ["--epochs", "1", "--set", "vocab.max_size=5000", "--set", "vocab.min_count=1"]
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for num_words in (options.words, options.words * FACTOR):
            text, output = Path(folder, f"{num_words}.txt"), Path(folder, f"{num_words}-out")
            write_text(text, num_words=num_words)
            command = [sys.executable, "-m", "elmokit", options.command, str(text), *settings]
            measured = run_measured([*command, "-o", f"{output}{options.suffix}", "--json"])
            peak_mb, seconds = measured.peak_bytes / 2**20, measured.seconds
            runs.append(
                {"words": num_words, "peak_mb": round(peak_mb, 1), "seconds": round(seconds, 1)}
            )
    growth = runs[-1]["peak_mb"] / runs[0]["peak_mb"]
    results = {"runs": runs, "growth": round(growth, 3), "allowed": MAX_GROWTH}
    print_result(f"memory_{options.command}", vars(options), results)
    sys.exit(growth > MAX_GROWTH)


if __name__ == "__main__":
    main()
