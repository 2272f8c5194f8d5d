"""Embedding beside what a user would run instead: tokens a second, ratios.

    python benchmarks/bench_embed.py --make-environments
    python benchmarks/bench_embed.py --preset tiny
    python benchmarks/bench_embed.py --text wiki.txt [--sorted] > results.json

Every run is a process of its own, that of a peer in a virtual environment that --make-environments
makes in the cache folder (the only step that needs a network; nothing is installed anywhere else).
All read the same random weights of the released shapes and the same sentences; they run in turns
(A B C A B C …), and ratios are taken within a turn. All layers are returned as arrays. Batch:
sentences of one call. The clock includes text to ids, the network and the copies that are handed
out; loading, vocabularies known before (vocab_to_cache) and one call that warms up are outside.
Ours works without its word cache, but for the corpus in one call, which begins with an empty one.
Throughput counts words and the two boundaries of each sentence.
"""

import argparse
import sys
from itertools import cycle, islice
from typing import Any

import numpy as np
from common import (
    SHAPES,
    Sentence,
    alternate,
    compare_speeds,
    comparison_parser,
    model_folder,
    print_result,
    read_text,
    text_metadata,
)
from peers.programs import EMBEDDERS, OURS, make_environments, select

NUM_CHECKED = 8
PRESETS: dict[str, dict[str, Any]] = {
    # sentences of a run by batch size; the original shape gets a fourth, two batches at least
    "tiny": {"shapes": ["tiny"], "sentences": {1: 2, 8: 16}, "corpus_words": 500, "repeats": 2},
    "full": {
        "shapes": ["small", "original"], "sentences": {1: 64, 16: 256, 64: 256},
        "corpus_words": 100_000, "repeats": 5,
    },
}  # fmt: skip


def calls_of_cells(
    options: argparse.Namespace, shape: str, text: list[Sentence]
) -> dict[str, list[list[Sentence]]]:
    """Return the calls of each cell of a shape's table."""
    plan = PRESETS[options.preset]
    cells: dict[str, list[list[Sentence]]] = {}
    for batch in options.batches or plan["sentences"]:
        count = plan["sentences"].get(batch, 64)
        if shape == "original":
            count = max(count // 4, 2 * batch)
        sentences = list(islice(cycle(text), options.sentences or count))
        if options.sorted:
            sentences.sort(key=len)
        starts = range(0, len(sentences), batch)
        cells[f"{batch} a call"] = [sentences[start : start + batch] for start in starts]
    if options.corpus:
        count = plan["corpus_words"] * len(text) // sum(map(len, text))
        cells["a corpus in one call"] = [list(islice(cycle(text), count))]
    return cells


def measure_shape(options: argparse.Namespace, shape: str, text: list[Sentence]) -> dict[str, Any]:
    """Measure all cells of a shape with the programs that work."""
    request = {"folder": str(model_folder(shape)), "threads": options.threads}
    programs = select(EMBEDDERS, options.only)
    versions, vectors, skipped = {}, {}, {}
    for name in list(programs):
        try:
            calls = [text[:NUM_CHECKED]]
            answer = programs[name].ask("embed", calls=calls, keep_words=False, **request)
        except RuntimeError as error:
            skipped[name] = str(error)
            del programs[name]
            continue
        versions[name] = answer["versions"]
        vectors[name] = np.concatenate([np.ravel(one) for one in answer["vectors"]])
    ours = vectors.pop("elmokit fp32", None)
    differences = {
        name: float(np.abs(ours - of_one).max())
        for name, of_one in vectors.items() if ours is not None
    }  # fmt: skip
    cells = {}
    for name, calls in calls_of_cells(options, shape, text).items():
        is_corpus = "corpus" in name  # which peers do not embed in one call
        peaks: dict[str, int] = {}

        def run(one: str, calls: Any = calls, keep: bool = is_corpus, peaks: Any = peaks) -> float:
            answer = programs[one].ask("embed", calls=calls, keep_words=keep, **request)
            peaks[one] = answer["peak_mb"]
            return answer["seconds"]

        measured = [one for one in programs if programs[one].script == "ours" or not is_corpus]
        repeats = options.repeats or PRESETS[options.preset]["repeats"]
        seconds = alternate(measured, run, repeats=repeats)
        tokens = sum(len(sentence) + 2 for call in calls for sentence in call)
        cells[name] = {**compare_speeds(seconds, tokens=tokens, ours=list(OURS)), "peak_mb": peaks}
        print(f"{shape}, {name}: {cells[name]['ratios']}", file=sys.stderr, flush=True)
    return {"cells": cells, "differences": differences, "versions": versions, "skipped": skipped}


def main() -> None:
    parser = comparison_parser(__doc__)
    parser.add_argument("--preset", choices=PRESETS, default="full")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES)
    parser.add_argument("--batches", nargs="+", type=int, help="sentences of a call")
    parser.add_argument("--sentences", type=int, help="sentences of a run")
    parser.add_argument("--no-corpus", dest="corpus", action="store_false")
    parser.add_argument("--sorted", action="store_true", help="sentences by length for everyone")
    parser.add_argument("--make-environments", action="store_true")
    options = parser.parse_args()
    if options.make_environments:
        make_environments()
        return
    text = read_text(options.text)
    shapes = options.shapes or PRESETS[options.preset]["shapes"]
    results = {shape: measure_shape(options, shape, text) for shape in shapes}
    sizes = {"text": text_metadata(text, options.text), "threads": options.threads}
    print_result("embed", sizes, results)


if __name__ == "__main__":
    main()
