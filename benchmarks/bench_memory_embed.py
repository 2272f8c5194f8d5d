"""Peak memory of `elmokit embed` on a corpus and on one eight times as long.

python benchmarks/bench_memory_embed.py [--preset tiny|small] [--suffix .h5|.parquet]

The text is drawn from a Zipf distribution over 20,000 made-up words, the weights are random;
neither matters for memory. Exit code 1 if the longer corpus needs more than 10 % above the shorter.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import print_result, run_measured

FACTOR = 8
MAX_GROWTH = 1.10
PRESETS = {
    "tiny": {"cell_dim": 256, "projection_dim": 64, "words": 100_000},
    "small": {"cell_dim": 1024, "projection_dim": 128, "words": 60_000},
}


def write_model(path: Path, *, cell_dim: int, projection_dim: int) -> None:
    from elmokit import BiLMConfig, PretrainedBiLM
    from elmokit.nn.char_cnn import CharCNNConfig
    from elmokit.nn.lstmp import LSTMConfig

    cnn = CharCNNConfig(filters=((1, 32), (2, 32), (3, 64), (4, 128)), num_highway=1)
    lstm = LSTMConfig(cell_dim=cell_dim, projection_dim=projection_dim)
    PretrainedBiLM(BiLMConfig(char_cnn=cnn, lstm=lstm)).save(path)


def write_text(path: Path, *, num_words: int) -> None:
    """Write sentences of 1 to 45 words, 23 on average; a longer text begins like a shorter one."""
    random = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    vocabulary = ["".join(random.choice(letters, random.integers(2, 13))) for _ in range(20_000)]
    with path.open("w", encoding="utf-8") as file:
        while num_words > 0:
            length = min(num_words, int(random.integers(1, 46)))
            ranks = random.zipf(1.2, length) % len(vocabulary)
            file.write(" ".join(vocabulary[rank] for rank in ranks) + "\n")
            num_words -= length


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", choices=PRESETS, default="tiny")
    parser.add_argument("--suffix", choices=[".h5", ".parquet", ".npz"], default=".h5")
    parser.add_argument("--dtype", choices=["float32", "float16"], default="float32")
    options = parser.parse_args()
    sizes = dict(PRESETS[options.preset])
    num_words = sizes.pop("words")

    runs = []
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        write_model(model, **sizes)
        for factor in (1, FACTOR):
            text, output = Path(folder) / "text.txt", Path(folder) / f"out{options.suffix}"
            write_text(text, num_words=num_words * factor)
            files = [str(text), "-o", str(output), "-m", str(model)]
            arguments = ["embed", *files, "--dtype", options.dtype, "--json"]
            measured = run_measured([sys.executable, "-m", "elmokit", *arguments])
            report = json.loads(measured.stdout)
            runs.append(
                {
                    "words": report["words"],
                    "sentences": report["sentences"],
                    "peak_mb": round(measured.peak_bytes / 2**20, 1),
                    "output_mb": round(output.stat().st_size / 2**20, 1),
                    "words_per_second": round(report["words_per_second"]),
                }
            )
            output.unlink()
    growth = runs[1]["peak_mb"] / runs[0]["peak_mb"]
    passed = growth <= MAX_GROWTH
    print_result(
        "memory_embed",
        {"preset": options.preset, **sizes, "suffix": options.suffix, "dtype": options.dtype},
        {"runs": runs, "growth": round(growth, 3), "allowed": MAX_GROWTH, "passed": passed},
    )
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
