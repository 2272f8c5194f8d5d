"""Peak memory of `elmokit embed` or `elmokit pretrain` on a corpus and on one eight times as long.

    python benchmarks/bench_memory.py embed|pretrain [--preset tiny] [--words 100000]

The text is drawn from a Zipf distribution over made-up words; new ones keep coming, as in real
text. Weights are random, pre-training runs one epoch and predicts the 5,000 most frequent words,
whatever the text.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from common import model_folder, new_parser, print_result, run_measured

FACTOR = 8


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
    """Run the command on both texts and print."""
    parser = new_parser(__doc__)
    parser.add_argument("command", choices=["embed", "pretrain"])
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--words", type=int, default=100_000, help="of the shorter text")
    options = parser.parse_args()
    settings = ["--preset", options.preset, "--tokenizer", "whitespace", "--epochs", "1"]
    settings += ["--set", "vocab.max_size=5000", "--set", "vocab.min_count=1"]
    if options.command == "embed":
        settings = ["--model", str(model_folder(options.preset) / "model")]
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        for num_words in (options.words, options.words * FACTOR):
            text, output = Path(folder, f"{num_words}.txt"), Path(folder, f"{num_words}.h5")
            write_text(text, num_words=num_words)
            command = [sys.executable, "-m", "elmokit", options.command, str(text), *settings]
            peaks[num_words] = run_measured([*command, "-o", str(output)]).peak_bytes / 2**20
    growth = peaks[options.words * FACTOR] / peaks[options.words]
    print_result("memory", vars(options), {"peak_mb": peaks, "growth": round(growth, 3)})


if __name__ == "__main__":
    main()
