"""Write the golden vectors: what the packaged models make of 200 sentences in every precision.

    python recipes/golden_vectors.py

`tests/parity/test_golden_vectors.py` compares with them. Whoever writes them anew says in the
changelog why vectors change.
"""

from pathlib import Path

import numpy as np

import elmokit

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests/parity/golden_vectors.npz"
NUM_SENTENCES, NUM_NUMBERS = 200, 4
PRECISIONS = ("fp32", "bf16", "int8")


def sketch(name: str, precision: str) -> np.ndarray:
    """Return four numbers for every sentence (200, 4) that any change of its vectors changes.

    They are products with fixed random vectors, of length 1, of all layers and words of a sentence.
    """
    embedder = elmokit.Embedder.load(name, device="cpu", precision=precision)
    text = (ROOT / f"src/elmokit/data/demo/{name}.txt").read_text(encoding="utf-8")
    sentences = [line.split() for line in text.splitlines()[:NUM_SENTENCES]]
    rows = []
    for number, vectors in enumerate(embedder.embed(sentences)):
        directions = np.random.default_rng(number).standard_normal((NUM_NUMBERS, vectors.size))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        rows.append(directions @ vectors.reshape(-1).astype(np.float64))
    return np.array(rows)


def main() -> None:
    golden = {
        f"{name}-{precision}": sketch(name, precision).astype(np.float32)
        for name in ("en", "ko")
        for precision in PRECISIONS
    }
    np.savez_compressed(GOLDEN, **golden)
    print(f"{GOLDEN.relative_to(ROOT)}: {GOLDEN.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
