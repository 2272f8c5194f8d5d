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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import alternate, print_result, speed_ratio, speed_table, throughputs
from inputs import SHAPES, Sentence, model_folder, read_text, take_words, text_metadata
from peers import EMBEDDERS, ENVIRONMENTS, PeerError, Worker, make_environment, start_all

NUM_CHECKED = 8


@dataclass(frozen=True)
class Plan:
    """What a preset measures."""

    shapes: tuple[str, ...]
    sentences: dict[int, int]
    """Batch size -> sentences of a run; the original shape gets a fourth, two batches at least."""
    corpus_words: int
    repeats: int


PLANS = {
    "tiny": Plan(("tiny",), {1: 2, 8: 16}, 500, 2),
    "full": Plan(("small", "original"), {1: 64, 16: 256, 64: 256}, 100_000, 5),
}


def prepare(
    workers: dict[str, Worker],
    skipped: dict[str, str],
    calls: Sequence[Sequence[Sentence]],
    *,
    keep_words: bool = False,
) -> None:
    """Hand over the sentences; whoever cannot take them is out."""
    for name, worker in list(workers.items()):
        try:
            worker.ask("prepare", batches=calls, keep_words=keep_words)
        except PeerError as error:
            skipped[name] = str(error)
            workers.pop(name).close()


def differences(workers: dict[str, Worker]) -> dict[str, float]:
    """Return how far each program's vectors are from ours at fp32, at the most."""
    vectors: dict[str, list[np.ndarray]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "vectors.npz"))
        for name, worker in workers.items():
            if EMBEDDERS[name].equal:
                worker.ask("vectors", path=path)
                with np.load(path) as arrays:
                    vectors[name] = [arrays[key] for key in arrays.files]
    ours = vectors.pop("elmokit fp32", None)
    return {
        name: max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True))
        for name, theirs in (vectors.items() if ours is not None else ())
    }


def summarize(seconds: dict[str, list[float]], tokens: int) -> dict[str, Any]:
    """Turn seconds into throughputs and ratios to every peer."""
    speeds = throughputs(seconds, tokens)
    ours = [name for name in seconds if EMBEDDERS[name].is_ours]
    peers = [name for name in seconds if name not in ours]
    comparable = [p for p in peers if EMBEDDERS[p].equal and not EMBEDDERS[p].knows_words]
    return {
        "tokens": tokens,
        "seconds": seconds,
        "tokens_per_second": speeds,
        "fastest_peer": max(comparable, key=lambda name: speeds[name]["median"], default=None),
        "ratios": {
            name: {peer: vars(speed_ratio(seconds[name], seconds[peer])) for peer in peers}
            for name in ours
        },
    }


def measure_shape(
    options: argparse.Namespace, plan: Plan, shape: str, text: list[Sentence]
) -> dict[str, Any]:
    """Measure all cells of a shape."""
    folder = str(model_folder(shape))
    request = {"folder": folder, "threads": options.threads, "max_batch": max(plan.sentences)}
    workers, versions, skipped = start_all(
        EMBEDDERS,
        "embed",
        options,
        lambda program, worker: worker.ask("load", **request, settings=program.settings),
    )
    cells: list[dict[str, Any]] = []

    def measure(name: str, calls: list[list[Sentence]], *, is_corpus: bool = False) -> None:
        if options.sorted:
            ordered = sorted((one for call in calls for one in call), key=len)
            size = len(calls[0])
            calls = [ordered[i : i + size] for i in range(0, len(ordered), size)]
        prepare(workers, skipped, calls, keep_words=is_corpus)
        runs = {
            program: lambda worker=worker: worker.ask("run")["seconds"]
            for program, worker in workers.items()
            if EMBEDDERS[program].is_ours or not is_corpus
        }
        tokens = sum(len(sentence) + 2 for call in calls for sentence in call)
        cell = summarize(alternate(runs, repeats=options.repeats or plan.repeats), tokens)
        cells.append({"name": name, **cell})
        with_vocabulary = [program for program in runs if EMBEDDERS[program].knows_words]
        compared = dict.fromkeys(["AllenNLP", cell["fastest_peer"] or "peers", *with_vocabulary])
        print(f"{shape}, {name}\n{speed_table(cell, list(compared))}", file=sys.stderr, flush=True)

    try:
        prepare(workers, skipped, [text[:NUM_CHECKED]])
        found = differences(workers)
        for batch in options.batches or plan.sentences:
            count = plan.sentences.get(batch, 64)
            if shape == "original":
                count = max(count // 4, 2 * batch)
            count = options.sentences or count
            chosen = [text[i % len(text)] for i in range(count)]
            calls = [chosen[i : i + batch] for i in range(0, count, batch)]
            measure(f"{batch} sentence{'s' if batch > 1 else ''} a call ({count} in all)", calls)
        if options.corpus:
            corpus = take_words(text, plan.corpus_words)
            measure(f"one call with {plan.corpus_words:,} words", [corpus], is_corpus=True)
        peaks = {name: worker.ask("peak")["bytes"] for name, worker in workers.items()}
    finally:
        for worker in workers.values():
            worker.close()
    return {
        "cells": cells,
        "differences": found,
        "skipped": skipped,
        "versions": versions,
        "peak_mb": {name: round(size / 2**20) for name, size in peaks.items()},
    }


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", choices=PLANS, default="full")
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
    torch.set_num_threads(options.threads)
    text, plan = read_text(options.text), PLANS[options.preset]
    shapes = options.shapes or plan.shapes
    results = {shape: measure_shape(options, plan, shape, text) for shape in shapes}
    sizes = {"text": text_metadata(text, options.text), "threads": options.threads}
    print_result("embed", sizes, results)


if __name__ == "__main__":
    main()
