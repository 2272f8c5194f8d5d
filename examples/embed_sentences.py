"""Contextual vectors of a word in several sentences, and how alike they are.

python examples/embed_sentences.py MODEL
"""

import sys

import numpy as np

import elmokit

SENTENCES = [
    ["They", "walked", "along", "the", "bank", "of", "the", "river", "."],
    ["The", "boat", "lay", "by", "the", "bank", "."],
    ["The", "bank", "lent", "me", "money", "."],
]


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def main(model: str) -> None:
    embedder = elmokit.Embedder.load(model)
    vectors = embedder.embed(SENTENCES, layers="top")
    banks = [
        array[sentence.index("bank")] for array, sentence in zip(vectors, SENTENCES, strict=True)
    ]
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        pair = " | ".join(" ".join(SENTENCES[k]) for k in (i, j))
        print(f"{cosine(banks[i], banks[j]):.3f}  {pair}")


if __name__ == "__main__":
    main(sys.argv[1])
