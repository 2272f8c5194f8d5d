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
which begins with an empty one.
Throughput counts words and the two boundaries of each sentence. Sentences come in text order;
--sorted gives them by length to every program.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Spread, alternate, describe, speed_ratio, speed_table
from peers import EMBEDDERS, ENVIRONMENTS, PeerError, Worker, close_all, make_environment
from shapes import CACHE_DIR, model_folder
from texts import Sentence, batches, num_tokens, read_text, take_words, text_metadata

NUM_CHECKED = 8


@dataclass(frozen=True)
class Plan:
    """What a preset measures."""

    shapes: tuple[str, ...]
    sentences: dict[int, int]
    """Batch size -> sentences of a run, on the small shape."""
    corpus_words: int
    repeats: int


PLANS = {
    "tiny": Plan(("tiny",), {1: 2, 8: 16}, 500, 2),
    "full": Plan(("small", "original"), {1: 64, 16: 256, 64: 256}, 100_000, 5),
}
FEWER_ON_ORIGINAL = 4
"""The original shape gets a fourth of the sentences, but two batches at least."""


def num_sentences(plan: Plan, shape: str, batch: int) -> int:
    """Return the sentences of one run of a cell."""
    count = plan.sentences[batch]
    return count if shape != "original" else max(count // FEWER_ON_ORIGINAL, 2 * batch)


class Programs:
    """The programs that run here, loaded with one shape; why the others do not."""

    def __init__(self, options: argparse.Namespace, folder: Path, *, max_batch: int) -> None:
        self.workers: dict[str, Worker] = {}
        self.versions: dict[str, dict[str, str]] = {}
        self.skipped: dict[str, str] = {}
        for name, program in EMBEDDERS.items():
            if options.only and not any(part in name for part in options.only):
                continue
            try:
                worker = program.start(options.environments, threads=options.threads)
            except FileNotFoundError as error:
                self.skipped[name] = str(error)
                continue
            try:
                loaded = worker.ask(
                    "load",
                    folder=str(folder),
                    threads=options.threads,
                    max_batch=max_batch,
                    settings=program.settings | (dict(options.ours) if program.is_ours else {}),
                )
            except PeerError as error:
                self.skipped[name] = str(error)
                worker.close()
                continue
            self.workers[name], self.versions[name] = worker, loaded["versions"]

    def prepare(self, calls: Sequence[Sequence[Sentence]], *, keep_words: bool = False) -> None:
        """Hand over the sentences; whoever cannot take them is out."""
        for name, worker in list(self.workers.items()):
            try:
                worker.ask("prepare", batches=calls, keep_words=keep_words)
            except PeerError as error:
                self.skipped[name] = str(error)
                self.workers.pop(name).close()

    def differences(self, sentences: list[Sentence]) -> dict[str, float]:
        """Return how far each program's vectors are from ours at fp32, at the most."""
        self.prepare([sentences])
        found: dict[str, list[np.ndarray]] = {}
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "vectors.npz"))
            for name, worker in self.workers.items():
                if EMBEDDERS[name].equal:
                    worker.ask("vectors", path=path)
                    with np.load(path) as arrays:
                        found[name] = [arrays[key] for key in arrays.files]
        ours = found.pop("elmokit fp32", None)
        if ours is None:
            return {}
        return {
            name: max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True))
            for name, theirs in found.items()
        }


def measure_cell(
    programs: Programs,
    calls: Sequence[Sequence[Sentence]],
    *,
    repeats: int,
    only_ours: bool = False,
) -> dict[str, Any]:
    """Run all programs over the calls in turns."""
    programs.prepare(calls, keep_words=only_ours)
    runs: dict[str, Callable[[], float]] = {
        name: worker.run
        for name, worker in programs.workers.items()
        if EMBEDDERS[name].is_ours or not only_ours
    }
    seconds = alternate(runs, repeats=repeats)
    return {"tokens": num_tokens(calls), **summarize(seconds, num_tokens(calls))}


def summarize(seconds: dict[str, list[float]], tokens: int) -> dict[str, Any]:
    """Turn seconds into throughputs and ratios to every peer."""
    ours = [name for name in seconds if EMBEDDERS[name].is_ours]
    peers = [name for name in seconds if name not in ours]
    comparable = [p for p in peers if EMBEDDERS[p].equal and not EMBEDDERS[p].knows_words]
    speeds = {
        name: Spread.of([tokens / second for second in times]) for name, times in seconds.items()
    }
    return {
        "seconds": seconds,
        "tokens_per_second": {name: asdict(speed) for name, speed in speeds.items()},
        "fastest_peer": max(comparable, key=lambda name: speeds[name].median, default=None),
        "ratios": {
            name: {peer: asdict(speed_ratio(seconds[name], seconds[peer])) for peer in peers}
            for name in ours
        },
    }


def cell_table(cell: dict[str, Any]) -> str:
    """Return a cell as a table, a row each program."""
    with_vocabulary = [name for name in cell["seconds"] if EMBEDDERS[name].knows_words]
    compared = list(dict.fromkeys(["AllenNLP", cell["fastest_peer"] or "peers", *with_vocabulary]))
    return speed_table(cell, compared)


def measure(options: argparse.Namespace, text: list[Sentence]) -> dict[str, Any]:
    """Measure all cells of the preset."""
    plan = PLANS[options.preset]
    results: dict[str, Any] = {"shapes": {}, "versions": {}}
    for shape in options.shapes or plan.shapes:
        folder = model_folder(shape, options.cache)
        programs = Programs(options, folder, max_batch=max(plan.sentences))
        cells = []
        try:
            differences = programs.differences(text[:NUM_CHECKED])
            say(f"{shape}: differences to elmokit fp32: {differences}")
            for batch in options.batches or plan.sentences:
                count = options.sentences or num_sentences(plan, shape, batch)
                chosen = ordered([text[i % len(text)] for i in range(count)], options.sorted)
                calls = batches(chosen, batch, count)
                cell = measure_cell(programs, calls, repeats=options.repeats)
                name = f"{batch} sentence{'s' if batch > 1 else ''} a call ({count} in all)"
                cells.append({"name": name, **cell})
                say(f"{shape}, {name}\n{cell_table(cell)}")
            if options.corpus:
                corpus = ordered(take_words(text, plan.corpus_words), options.sorted)
                cell = measure_cell(programs, [corpus], repeats=options.repeats, only_ours=True)
                cells.append({"name": f"one call with {plan.corpus_words:,} words", **cell})
                say(f"{shape}, {cells[-1]['name']}\n{cell_table(cell)}")
            peaks = {n: worker.ask("peak")["bytes"] for n, worker in programs.workers.items()}
        finally:
            close_all(list(programs.workers.values()))
        results["shapes"][shape] = {
            "cells": cells,
            "differences": differences,
            "skipped": programs.skipped,
            "peak_mb": {name: round(size / 2**20) for name, size in peaks.items()},
        }
        results["versions"] |= programs.versions
    return results


def ordered(sentences: list[Sentence], by_length: bool) -> list[Sentence]:
    """Return the sentences as they come, or by length."""
    return sorted(sentences, key=len) if by_length else sentences


def say(message: str) -> None:
    """Tell how far we are, on stderr."""
    print(message, file=sys.stderr, flush=True)


def setting(text: str) -> tuple[str, Any]:
    """Read ``NAME=JSON``."""
    name, _, value = text.partition("=")
    return name, json.loads(value)


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", choices=PLANS, default="full")
    parser.add_argument("--shapes", nargs="+", choices=["tiny", "small", "original"])
    parser.add_argument("--batches", nargs="+", type=int, help="of the preset's batch sizes")
    parser.add_argument("--sentences", type=int, help="sentences of a run")
    parser.add_argument("--no-corpus", dest="corpus", action="store_false")
    parser.add_argument("--only", nargs="+", help="programs whose name has one of these parts")
    parser.add_argument(
        "--ours",
        nargs="+",
        type=setting,
        default=[],
        metavar="NAME=JSON",
        help="more arguments of Embedder.load",
    )
    parser.add_argument(
        "--text", type=Path, help="tokenized, a sentence a line; default: demo text"
    )
    parser.add_argument("--sorted", action="store_true", help="sentences by length for everyone")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=CACHE_DIR, help="weights")
    parser.add_argument("--environments", type=Path, default=CACHE_DIR / "environments")
    parser.add_argument("--make-environments", action="store_true", help="make them and stop")
    options = parser.parse_args()
    options.repeats = options.repeats or PLANS[options.preset].repeats
    return options


def main() -> None:
    """Parse, measure, print."""
    options = parse_options()
    if options.make_environments:
        for name in ENVIRONMENTS:
            say(f"{name}: {options.environments / name}")
            make_environment(name, options.environments)
        return
    torch.set_num_threads(options.threads)
    text = read_text(options.text)
    sizes = {
        "text": text_metadata(text, options.text),
        "threads": options.threads,
        "repeats": options.repeats,
        "sorted": options.sorted,
        "ours": dict(options.ours),
    }
    description = describe("embed", sizes, measure(options, text))
    print(json.dumps(description, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
