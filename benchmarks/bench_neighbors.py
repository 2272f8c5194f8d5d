"""Nearest neighbors of ambiguous words in real text, as a table to read.

    python benchmarks/bench_neighbors.py MODEL TEXT WORD … [--layers top|average|0|1|2] [--show 4]

For each word its occurrences in TEXT are embedded; for a few the nearest others are shown.
"""

import argparse
from pathlib import Path

from elmokit.analysis.neighbors import find_occurrences, neighborhoods
from elmokit.corpus.readers import read_sentences
from elmokit.embed.embedder import Embedder


def main() -> None:
    """Parse, embed, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("words", nargs="+")
    parser.add_argument("--layers", default="top")
    parser.add_argument("--show", type=int, default=4, help="occurrences shown of each word")
    options = parser.parse_args()
    layers = int(options.layers) if options.layers.isdigit() else options.layers
    embedder = Embedder.load(options.model)
    sentences = list(read_sentences([options.text], embedder.tokenizer))
    for word in options.words:
        occurrences = [o for o in find_occurrences(sentences, word) if 8 <= len(o.tokens) <= 60]
        print(f"\n### {word} ({len(occurrences)} occurrences)")
        if len(occurrences) < 2:
            continue
        found = neighborhoods(embedder, occurrences, layers=layers, num_neighbors=2)
        best = sorted(found, key=lambda one: -one.similarities[0])
        for one in best[:: max(1, len(best) // options.show)][: options.show]:
            print(f"\n- {one.occurrence.marked(context=8)}")
            for other, similarity in zip(one.neighbors, one.similarities, strict=True):
                print(f"    - {similarity:.2f} {other.marked(context=8)}")


if __name__ == "__main__":
    main()
