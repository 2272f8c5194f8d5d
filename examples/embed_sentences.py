"""Contextual vectors of one word in three sentences, and how alike they are.

python examples/embed_sentences.py en    # or ko, or a model directory
"""

import sys

import numpy as np

import elmokit

ENGLISH = ("bank", [
    "They sat on the bank of the river.",
    "The village lies on the west bank of the river.",
    "The bank lent me money.",
])  # fmt: skip
KOREAN = ("말", [
    "왕은 흰 말을 타고 있었다.",
    "검은 말이 들판을 달렸다.",
    "그는 아무 말도 하지 않았다.",
])  # fmt: skip
"""A word and three sentences; it means the same in the first two, something else in the third."""


def cosines(embedder: elmokit.Embedder, word: str, sentences: list[str]) -> list[float]:
    """Return the cosine of the word's vectors in sentences 1 and 2, 1 and 3, 2 and 3."""
    tokens = [embedder.tokenizer.tokenize(sentence) for sentence in sentences]
    vectors = embedder.embed(tokens, layers="top")
    rows = [array[line.index(word)] for array, line in zip(vectors, tokens, strict=True)]
    first, second, third = (row / np.linalg.norm(row) for row in rows)
    return [float(first @ second), float(first @ third), float(second @ third)]


def main(model: str) -> None:
    embedder = elmokit.Embedder.load(model)
    is_korean = embedder.tokenizer_config.name == "korean"
    word, sentences = KOREAN if is_korean else ENGLISH
    found = cosines(embedder, word, sentences)
    for cosine, (i, j) in zip(found, [(0, 1), (0, 2), (1, 2)], strict=True):
        print(f"{cosine:.2f}  {sentences[i]} | {sentences[j]}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
