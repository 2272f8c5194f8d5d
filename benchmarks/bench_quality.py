"""How near bf16 and int8 vectors are to fp32's: cosine of every word, at the median and the worst.

    python benchmarks/bench_quality.py --preset tiny
    python benchmarks/bench_quality.py --text wiki.txt [--model DIR] [--write]

Random weights of the released shapes are measured, and those of a trained model with --model.
Prints for every layer the median and the cosine that 0.1 % of the words fall below.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import describe, markdown_page, markdown_table, write_page
from shapes import CACHE_DIR, model_folder
from texts import Sentence, read_text, take_words, text_metadata

from elmokit import Embedder

WORST_SHARE = 0.001
PRESETS = {"tiny": (("tiny",), 500), "full": (("small", "original"), 20_000)}


def cosines(vectors: Sequence[np.ndarray], references: Sequence[np.ndarray]) -> np.ndarray:
    """Return the cosine of every word in every layer, (L, words of all sentences)."""
    a = np.concatenate(vectors, axis=1).astype(np.float64)
    b = np.concatenate(references, axis=1).astype(np.float64)
    lengths = np.linalg.norm(a, axis=2) * np.linalg.norm(b, axis=2)
    return (a * b).sum(axis=2) / lengths


def summarize(found: np.ndarray) -> dict[str, float]:
    """Return the median and the limit of the worst 0.1 %."""
    return {"median": float(np.median(found)), "worst": float(np.quantile(found, WORST_SHARE))}


def measure(model: Path, text: list[Sentence], *, threads: int) -> dict[str, Any]:
    """Compare every reduced precision with fp32; one that is refused is said to be."""
    exact = Embedder.load(model, num_threads=threads).embed(text)
    results: dict[str, Any] = {}
    for precision in ("bf16", "int8"):
        try:
            embedder = Embedder.load(model, precision=precision, num_threads=threads)
        except ValueError as error:
            results[precision] = {"skipped": str(error)}
            continue
        found = cosines(embedder.embed(text), exact)
        results[precision] = {
            **{f"layer {number}": summarize(layer) for number, layer in enumerate(found)},
            "all layers": summarize(found),
        }
    return results


def page(description: dict[str, Any]) -> str:
    """Return the results as a Markdown page."""
    metadata = description["sizes"]["text"]
    parts = [f"Text: {metadata['text']}; {description['sizes']['words']:,} words.\n"]
    for model, precisions in description["results"].items():
        rows = []
        for precision, found in precisions.items():
            if "skipped" in found:
                rows.append([precision, found["skipped"], "–", "–"])
                continue
            rows += [
                [precision, part, f"{cosine['median']:.6f}", f"{cosine['worst']:.6f}"]
                for part, cosine in found.items()
            ]
        headers = ["precision", "vectors", "median cosine", "worst 0.1 %"]
        parts.append(f"## {model}\n\n{markdown_table(headers, rows)}")
    return markdown_page("Reduced precision against fp32", description, "\n".join(parts))


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", choices=PRESETS, default="full")
    parser.add_argument("--model", type=Path, help="a trained model, beside the random weights")
    parser.add_argument(
        "--text", type=Path, help="tokenized, a sentence a line; default: demo text"
    )
    parser.add_argument("--words", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=CACHE_DIR, help="weights")
    parser.add_argument("--write", action="store_true", help="keep the table in results/")
    options = parser.parse_args()
    shapes, words = PRESETS[options.preset]
    words = options.words or words
    text = read_text(options.text)
    models = {f"random: {s}": model_folder(s, options.cache) / "model" for s in shapes}
    if options.model is not None:
        models[f"trained: {options.model.name}"] = options.model
    chosen = take_words(text, words)
    sizes = {"text": text_metadata(text, options.text), "words": words, "threads": options.threads}
    results = {n: measure(path, chosen, threads=options.threads) for n, path in models.items()}
    description = describe("quality", sizes, results)
    print(json.dumps(description, indent=2, ensure_ascii=False))
    if options.write:
        path = write_page("quality", description, page(description))
        print(f"written: {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
