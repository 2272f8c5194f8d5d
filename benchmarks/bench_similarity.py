"""Sentence similarity without training: the poolings of `embed_sentences` beside TF-IDF.

    python benchmarks/bench_similarity.py pairs.jsonl --model en [--table table.safetensors]

Pairs are JSON lines with ``sentence1``, ``sentence2`` and ``score``, as in STS-B. TF-IDF counts
n-grams of 2 to 5 characters within words, with document frequencies of these sentences. A table is
one of `elmokit distil`; a sentence is then the plain mean of the rows of its words. Prints
Pearson's and Spearman's correlations times 100. Needs the extra `sklearn`.
"""

import json
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
from common import new_parser, print_result
from scipy.stats import pearsonr, spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer

from elmokit import Embedder
from elmokit.vectors.vector_files import read_vectors

POOLINGS: dict[str, dict[str, Any]] = {
    "embed_sentences(sentences)": {},
    'pooling="sif", layers="average"': {"pooling": "sif", "layers": "average"},
    'pooling="mean", layers=0': {"pooling": "mean", "layers": 0},
    'pooling="mean"': {"pooling": "mean"},
}


def correlations(vectors: np.ndarray, scores: list[float]) -> dict[str, float]:
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = (unit[::2] * unit[1::2]).sum(axis=1)
    return {
        "pearson": round(100 * float(pearsonr(cosines, scores)[0]), 1),
        "spearman": round(100 * float(spearmanr(cosines, scores)[0]), 1),
    }


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--model", default="en")
    parser.add_argument("--table", type=Path, action="append", default=[])
    options = parser.parse_args()
    with fsspec.open(str(options.pairs), "rt", compression="infer", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    sentences = [row[name] for row in rows for name in ("sentence1", "sentence2")]
    scores = [float(row["score"]) for row in rows]
    embedder = Embedder.load(options.model)
    ways = {
        name: embedder.embed_sentences(sentences, **settings) for name, settings in POOLINGS.items()
    }
    tfidf = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    ways["character TF-IDF"] = tfidf.fit_transform(sentences).toarray()
    words = [embedder.tokenizer.tokenize(sentence) for sentence in sentences]
    for table in options.table:
        static = read_vectors(table)
        means = [static.values[[static.id_of(w) for w in ws]].mean(axis=0) for ws in words]
        ways[f"mean of rows of {table.name}"] = np.array(means)
    results = {name: correlations(vectors, scores) for name, vectors in ways.items()}
    print_result("similarity", {"pairs": len(rows), "model": options.model}, results)


if __name__ == "__main__":
    main()
