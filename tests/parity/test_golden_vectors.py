"""The packaged models give the vectors that they gave before.

    python tests/parity/test_golden_vectors.py

writes them anew; whoever does so says in the changelog why vectors change.
"""

from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.kernels.library import load_kernels

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/parity/golden_vectors.npz"
TOLERANCES = {"fp32": 5e-6, "bf16": 0.01, "int8": 0.05}
"""Processors differ by rounding; a layer or direction that is mixed up changes whole numbers."""


def sketch(name, precision):
    """Four numbers for each of 200 sentences that any change of its vectors changes.

    They are products with fixed random vectors, of length 1, of all layers and words of a sentence.
    """
    embedder = elmokit.Embedder.load(name, device="cpu", precision=precision)
    text = (ROOT / f"src/elmokit/data/demo/{name}.txt").read_text(encoding="utf-8")
    sentences = [line.split() for line in text.splitlines()[:200]]
    rows = []
    for number, vectors in enumerate(embedder.embed(sentences)):
        directions = np.random.default_rng(number).standard_normal((4, vectors.size))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        rows.append(directions @ vectors.reshape(-1).astype(np.float64))
    return np.array(rows)


@pytest.mark.parametrize("precision", TOLERANCES)
@pytest.mark.parametrize("name", ["en", "ko"])
def test_vectors_are_those_of_the_last_release(name, precision):
    if precision != "fp32" and load_kernels() is None:
        pytest.skip("no compiled kernels, which bf16 and int8 need")
    with np.load(GOLDEN) as golden:
        expected = golden[f"{name}-{precision}"]
    found = sketch(name, precision)
    np.testing.assert_allclose(found, expected, atol=TOLERANCES[precision], rtol=0)


def test_the_english_vocabulary_has_words_as_the_tokenizer_of_the_model_makes_them():
    model = elmokit.load_model("en")
    for word in model.word_vocab.frequent_words()[:5000]:
        # by itself "etc." is a word and the end of a sentence
        assert model.tokenize(word) in ([word], [word[:-1], "."])


if __name__ == "__main__":
    cases = [(name, precision) for name in ("en", "ko") for precision in TOLERANCES]
    arrays = {"-".join(case): sketch(*case).astype(np.float32) for case in cases}
    np.savez_compressed(GOLDEN, **arrays)
