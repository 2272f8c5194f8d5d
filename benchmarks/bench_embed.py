"""Embedding beside what a user would run instead: tokens a second, ratios.

    python benchmarks/bench_embed.py --make-environments
    python benchmarks/bench_embed.py --preset tiny
    python benchmarks/bench_embed.py --text wiki.txt [--sorted] > results.json

Every program runs in a process of its own, the peers in virtual environments that
--make-environments makes in the cache folder (the only step that needs a network; nothing is
installed anywhere else). All read the same random weights of the released shapes and the same
sentences; only one works at a time, in turns (A B C A B C …), and ratios are taken within a turn.
All layers are returned as arrays. Batch: sentences of one call. The clock includes text to ids, the
network and the copies that are handed out; loading, vocabularies known before (vocab_to_cache) and
one warm-up run are outside. Ours works without its word cache, but for the corpus in one call,
which begins with an empty one. Throughput counts words and the two boundaries of each sentence.
"""

import argparse
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    SHAPES,
    Sentence,
    alternate,
    model_folder,
    new_parser,
    print_result,
    ratios,
    read_text,
    speed_table,
    text_metadata,
    throughputs,
)  # fmt: skip
from peers import EMBEDDERS, ENVIRONMENTS, Workers, make_environment, start_all

NUM_CHECKED = 8
PRESETS: dict[str, dict[str, Any]] = {
    # sentences of a run by batch size; the original shape gets a fourth, two batches at least
    "tiny": {"shapes": ["tiny"], "sentences": {1: 2, 8: 16}, "corpus_words": 500, "repeats": 2},
    "full": {
        "shapes": ["small", "original"], "sentences": {1: 64, 16: 256, 64: 256},
        "corpus_words": 100_000, "repeats": 5,
    },
}  # fmt: skip


def prepare(workers: Workers, calls: list[list[Sentence]], *, keep_words: bool = False) -> None:
    """Hand over the sentences of a run."""
    for worker in workers.values():
        worker.ask("prepare", batches=calls, keep_words=keep_words)


def differences(workers: Workers) -> dict[str, float]:
    """Return how far each program's vectors are from ours at fp32, at the most."""
    vectors: dict[str, list[np.ndarray]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "vectors.npz"))
        for name, worker in workers.items():
            worker.ask("vectors", path=path)
            with np.load(path) as arrays:
                vectors[name] = [arrays[key] for key in arrays.files]
    ours = vectors.pop("elmokit fp32", None)
    return {
        name: max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True))
        for name, theirs in (vectors.items() if ours is not None else ())
    }


def measure(
    workers: Workers, calls: list[list[Sentence]], repeats: int, *, is_corpus: bool = False
) -> dict[str, Any]:
    """Run all programs in turns; peers do not embed a corpus in one call."""
    prepare(workers, calls, keep_words=is_corpus)
    runs = {
        name: lambda worker=worker: worker.ask("run")["seconds"]
        for name, worker in workers.items()
        if EMBEDDERS[name].is_ours or not is_corpus
    }
    tokens = sum(len(sentence) + 2 for call in calls for sentence in call)
    seconds = alternate(runs, repeats=repeats)
    speeds = throughputs(seconds, tokens)
    ours = [name for name in seconds if EMBEDDERS[name].is_ours]
    peers = [name for name in seconds if name not in ours]
    comparable = [name for name in peers if not EMBEDDERS[name].knows_words]
    return {
        "tokens": tokens,
        "seconds": seconds,
        "tokens_per_second": speeds,
        "fastest_peer": max(comparable, key=lambda name: speeds[name]["median"], default=None),
        "ratios": ratios(seconds, ours, peers),
    }


def measure_shape(options: argparse.Namespace, shape: str, text: list[Sentence]) -> dict[str, Any]:
    """Measure all cells of a shape."""
    plan = PRESETS[options.preset]
    request = {"folder": str(model_folder(shape)), "threads": options.threads}
    request["max_batch"] = max(plan["sentences"])
    workers, found = start_all(
        EMBEDDERS, "embed", options,
        lambda program, worker: worker.ask("load", **request, settings=program.settings),
    )  # fmt: skip
    cells: dict[str, list[list[Sentence]]] = {}
    for batch in options.batches or plan["sentences"]:
        count = plan["sentences"].get(batch, 64)
        if shape == "original":
            count = max(count // 4, 2 * batch)
        count = options.sentences or count
        sentences = list(islice(cycle(text), count))
        if options.sorted:
            sentences.sort(key=len)
        name = f"{batch} sentence{'s' if batch > 1 else ''} a call ({count} in all)"
        cells[name] = [sentences[i : i + batch] for i in range(0, count, batch)]
    if options.corpus:
        words = text_metadata(text, None)["words_per_sentence"]
        count = round(plan["corpus_words"] / words)  # pyright: ignore[reportOperatorIssue]
        cells["a corpus in one call"] = [list(islice(cycle(text), count))]
    results = []
    try:
        prepare(workers, [text[:NUM_CHECKED]])
        found["differences"] = differences(workers)
        for name, calls in cells.items():
            is_corpus = name.startswith("a corpus")
            repeats = options.repeats or plan["repeats"]
            cell = measure(workers, calls, repeats, is_corpus=is_corpus)
            results.append({"name": name, **cell})
            with_words = [one for one in cell["seconds"] if EMBEDDERS[one].knows_words]
            compared = dict.fromkeys(["AllenNLP", cell["fastest_peer"] or "peers", *with_words])
            table = speed_table(cell, list(compared))
            print(f"{shape}, {name}\n{table}", file=sys.stderr, flush=True)
        peaks = {name: worker.ask("peak")["bytes"] for name, worker in workers.items()}
    finally:
        for worker in workers.values():
            worker.close()
    peak_mb = {name: round(size / 2**20) for name, size in peaks.items()}
    return {"cells": results, **found, "peak_mb": peak_mb}


def main() -> None:
    """Parse, measure, print."""
    parser = new_parser(__doc__)
    parser.add_argument("--preset", choices=PRESETS, default="full")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES)
    parser.add_argument("--batches", nargs="+", type=int, help="sentences of a call")
    parser.add_argument("--sentences", type=int, help="sentences of a run")
    parser.add_argument("--no-corpus", dest="corpus", action="store_false")
    parser.add_argument("--only", nargs="+", help="programs whose name has one of these parts")
    parser.add_argument("--text", type=Path, help="tokenized, a sentence a line")
    parser.add_argument("--sorted", action="store_true", help="sentences by length for everyone")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--make-environments", action="store_true")
    options = parser.parse_args()
    if options.make_environments:
        for name in ENVIRONMENTS:
            make_environment(name)
        return
    text = read_text(options.text)
    shapes = options.shapes or PRESETS[options.preset]["shapes"]
    results = {shape: measure_shape(options, shape, text) for shape in shapes}
    sizes = {"text": text_metadata(text, options.text), "threads": options.threads}
    print_result("embed", sizes, results)


if __name__ == "__main__":
    main()
