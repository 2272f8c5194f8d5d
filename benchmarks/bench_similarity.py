"""Sentence similarity without training: the poolings of `embed_sentences` beside TF-IDF.

    python benchmarks/bench_similarity.py pairs.jsonl --model en [--table table.safetensors]

Pairs are JSON lines with ``sentence1``, ``sentence2`` and ``score``, as in STS-B. TF-IDF counts
n-grams of 2 to 5 characters within words, with document frequencies of these sentences. A table is
one of `elmokit distil`; a sentence is then the plain mean of the rows of its words. Prints one JSON
object: Pearson's and Spearman's correlations times 100, and seconds. Needs the extra `sklearn`.
"""

import argparse
import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer

from elmokit import Embedder
from elmokit.vectors.vector_files import read_vectors


def character_tfidf(sentences: list[str]) -> np.ndarray:
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    return vectorizer.fit_transform(sentences).toarray()


def mean_rows(embedder: Embedder, sentences: list[str], table: Path) -> np.ndarray:
    static = read_vectors(table)
    words = [embedder.tokenizer.tokenize(sentence) for sentence in sentences]
    return np.array([static.values[[static.id_of(w) for w in ws]].mean(axis=0) for ws in words])


def correlations(vectors: np.ndarray, scores: list[float]) -> dict[str, float]:
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = (unit[::2] * unit[1::2]).sum(axis=1)
    return {
        "pearson": round(100 * float(pearsonr(cosines, scores)[0]), 1),
        "spearman": round(100 * float(spearmanr(cosines, scores)[0]), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--model", default="en")
    parser.add_argument("--table", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    opened = gzip.open if arguments.pairs.suffix == ".gz" else open
    with opened(arguments.pairs, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    sentences = [row[name] for row in rows for name in ("sentence1", "sentence2")]
    scores = [float(row["score"]) for row in rows]
    embedder = Embedder.load(arguments.model)
    ways: dict[str, Callable[[], np.ndarray]] = {
        "embed_sentences(sentences)": lambda: embedder.embed_sentences(sentences),
        'pooling="sif", layers="average"': lambda: embedder.embed_sentences(
            sentences, pooling="sif", layers="average"
        ),
        'pooling="mean", layers=0': lambda: embedder.embed_sentences(
            sentences, pooling="mean", layers=0
        ),
        'pooling="mean"': lambda: embedder.embed_sentences(sentences, pooling="mean"),
        "character TF-IDF": lambda: character_tfidf(sentences),
    }
    for table in arguments.table:
        ways[f"mean of rows of {table.name}"] = lambda table=table: mean_rows(
            embedder, sentences, table
        )
    results = {}
    for name, compute in ways.items():
        started = time.monotonic()
        vectors = compute()
        seconds = round(time.monotonic() - started, 1)
        results[name] = correlations(vectors, scores) | {"seconds": seconds}
    print(json.dumps({"pairs": len(rows), "model": arguments.model, "results": results}, indent=2))


if __name__ == "__main__":
    main()
