"""Peak memory of `elmokit embed` or `elmokit pretrain` on a corpus and on one eight times as long.

    python benchmarks/bench_memory.py embed [--preset tiny|small] [--suffix .h5|.parquet|.npz]
    python benchmarks/bench_memory.py pretrain [--preset toy|tiny] [--words N]

The text is drawn from a Zipf distribution over made-up words; new ones keep coming, as in real
text. Weights are random, pre-training runs one epoch and predicts the 5,000 most frequent words,
whatever the text. Exit code 1 if the longer corpus needs more than 10 % above the shorter.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import print_result, run_measured

FACTOR = 8
MAX_GROWTH = 1.10
VOCAB_SIZE = 5000
SHAPES = {"tiny": (256, 64), "small": (1024, 128)}
LETTERS = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))


def write_model(path: Path, *, cell_dim: int, projection_dim: int) -> None:
    """Write a model directory with random weights."""
    from elmokit import BiLMConfig, PretrainedBiLM
    from elmokit.bilm.char_cnn import CharCNNConfig
    from elmokit.bilm.lstmp import LSTMConfig

    cnn = CharCNNConfig(filters=((1, 32), (2, 32), (3, 64), (4, 128)), num_highway=1)
    lstm = LSTMConfig(cell_dim=cell_dim, projection_dim=projection_dim)
    PretrainedBiLM(BiLMConfig(char_cnn=cnn, lstm=lstm)).save(path)


def spell(rank: int) -> str:
    """Return the word of a frequency rank: frequent words are short."""
    letters = []
    while rank > 0:
        rank, letter = divmod(rank, len(LETTERS))
        letters.append(str(LETTERS[letter]))
    return "".join(letters)


def write_text(path: Path, *, num_words: int) -> None:
    """Write sentences of 1 to 45 words, 23 on average; a longer text begins like a shorter one."""
    random = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        while num_words > 0:
            length = min(num_words, int(random.integers(1, 46)))
            ranks = random.zipf(1.25, length) % 10**7 + 1
            file.write(" ".join(spell(int(rank)) for rank in ranks) + "\n")
            num_words -= length


def embed_command(folder: Path, options: argparse.Namespace) -> Callable[[Path], list[str]]:
    """Return what embeds a text, with a model made for it."""
    cell_dim, projection_dim = SHAPES[options.preset]
    write_model(folder / "model", cell_dim=cell_dim, projection_dim=projection_dim)
    output = str(folder / f"out{options.suffix}")
    arguments = ["-o", output, "-m", str(folder / "model"), "--overwrite"]
    return lambda text: ["embed", str(text), *arguments, "--json"]


def pretrain_command(folder: Path, options: argparse.Namespace) -> Callable[[Path], list[str]]:
    """Return what pre-trains on a text for one epoch, with a vocabulary that both texts fill."""
    common = ["--preset", options.preset, "--tokenizer", "whitespace", "--epochs", "1", "--json"]
    common += ["--set", f"vocab.max_size={VOCAB_SIZE}", "--set", "vocab.min_count=1"]
    return lambda text: ["pretrain", str(text), "-o", str(folder / f"run-{text.stem}"), *common]


def measure(folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the command on both texts."""
    make = embed_command if options.command == "embed" else pretrain_command
    command = make(folder, options)
    runs = []
    for factor in (1, FACTOR):
        text = folder / f"text{factor}.txt"
        write_text(text, num_words=options.words * factor)
        measured = run_measured([sys.executable, "-m", "elmokit", *command(text)])
        json.loads(measured.stdout)
        runs.append(
            {
                "words": options.words * factor,
                "peak_mb": round(measured.peak_bytes / 2**20, 1),
                "seconds": round(measured.seconds, 1),
            }
        )
    return runs


def main() -> None:
    """Parse, measure, judge, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["embed", "pretrain"])
    parser.add_argument("--preset", default=None, help="embed: tiny, small; pretrain: toy, tiny")
    parser.add_argument("--words", type=int, default=100_000, help="of the shorter text")
    parser.add_argument("--suffix", choices=[".h5", ".parquet", ".npz"], default=".h5")
    options = parser.parse_args()
    options.preset = options.preset or ("tiny" if options.command == "embed" else "toy")
    with tempfile.TemporaryDirectory() as folder:
        runs = measure(Path(folder), options)
    growth = runs[-1]["peak_mb"] / runs[0]["peak_mb"]
    passed = growth <= MAX_GROWTH
    results = {"runs": runs, "growth": round(growth, 3), "allowed": MAX_GROWTH, "passed": passed}
    print_result(f"memory_{options.command}", vars(options), results)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
