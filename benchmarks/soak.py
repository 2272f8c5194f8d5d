"""Long use of one process: memory over an hour, many loads, many threads.

    python benchmarks/soak.py stream [--minutes 60]   # memory while `embed_stream` reads on
    python benchmarks/soak.py loads [--number 200]    # memory after so many models
    python benchmarks/soak.py calls [--threads 8] [--number 1000]  # same bits as alone

``stream`` fills the cache of word vectors first (64 MB, what grows at first) and gives the slope of
a line through the resident memory after the first fifth of the time; the allowed slope is 1 MB/h.
``loads`` compares the memory after the last fifth with that after the first. ``calls`` embeds from
threads with one embedder and with one each, from a forked process, and from coroutines, and
compares every array with what one thread got alone. Exit code 1 if the figure is missed.
"""

import argparse
import asyncio
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from bench_memory import FULL_CACHE_WORDS, spell, write_model
from common import print_result

MAX_SLOPE_MB_PER_HOUR = 1.0
MAX_GROWTH_MB = 5.0
SENTENCE_WORDS = 25


def resident_mb() -> float:
    """Return the memory of this process."""
    import psutil

    return psutil.Process().memory_info().rss / 2**20


def sentences(random: np.random.Generator, number: int) -> Iterator[list[str]]:
    """Yield sentences of words that follow Zipf's law."""
    for _ in range(number):
        ranks = random.zipf(1.25, SENTENCE_WORDS) % 10**7 + 1
        yield [spell(int(rank)) for rank in ranks]


def soak_stream(minutes: float) -> dict[str, Any]:
    """Embed for so long; return the slope of the memory."""
    from elmokit import Embedder

    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder) / "model", cell_dim=128, projection_dim=128)
        embedder = Embedder.load(Path(folder) / "model", num_threads=1)
    new_words = ([spell(10**8 + 25 * k + n) for n in range(25)] for k in range(10**6))
    for _, _ in zip(range(FULL_CACHE_WORDS // 25), embedder.embed_stream(new_words), strict=False):
        pass
    random, started, rows, words = np.random.default_rng(0), time.monotonic(), [], 0
    while (seconds := time.monotonic() - started) < 60 * minutes:
        rows.append((seconds, resident_mb(), words))
        for array in embedder.embed_stream(sentences(random, 200)):
            words += array.shape[1]
    times, memory, _ = np.array([row for row in rows if row[0] > 12 * minutes]).T
    slope = float(np.polyfit(times / 3600, memory, 1)[0])
    return {
        "minutes": round(rows[-1][0] / 60, 1),
        "words": words,
        "measurements": len(rows),
        "first_mb": round(rows[0][1], 1),
        "after_a_fifth_mb": round(float(memory[0]), 1),
        "last_mb": round(float(memory[-1]), 1),
        "largest_mb": round(float(memory.max()), 1),
        "slope_mb_per_hour": round(slope, 2),
        "passed": slope <= MAX_SLOPE_MB_PER_HOUR,
    }


def soak_loads(number: int) -> dict[str, Any]:
    """Load the packaged model again and again, use it and drop it."""
    from elmokit import Embedder

    memory = []
    for _ in range(number):
        Embedder.load("en", num_threads=1).embed(["The bank of the river ."])
        memory.append(resident_mb())
    growth = float(np.mean(memory[-number // 5 :]) - np.mean(memory[number // 5 : 2 * number // 5]))
    return {
        "loads": number,
        "first_mb": round(memory[0], 1),
        "last_mb": round(memory[-1], 1),
        "growth_mb": round(growth, 2),
        "passed": growth <= MAX_GROWTH_MB,
    }


def count_different(
    embed: Callable[[list[list[str]]], Sequence[np.ndarray]],
    batches: Sequence[list[list[str]]],
    expected: Sequence[Sequence[np.ndarray]],
    *,
    first: int,
    number: int,
) -> int:
    """Embed ``number`` batches from the ``first`` on; return how many differ in any bit."""
    different = 0
    for call in range(first, first + number):
        found, right = embed(batches[call % len(batches)]), expected[call % len(batches)]
        different += not all(map(np.array_equal, found, right))
    return different


def soak_calls(num_threads: int, number: int) -> dict[str, Any]:
    """Compare what threads, a fork and coroutines get with what one thread gets alone."""
    from elmokit import Embedder

    batches = [list(sentences(np.random.default_rng(seed), 1 + seed % 3)) for seed in range(40)]
    shared = Embedder.load("en", num_threads=1)
    expected = [shared.embed(batch) for batch in batches]
    several = [Embedder.load("en", num_threads=1) for _ in range(num_threads)]
    barrier = threading.Barrier(num_threads)

    def work(embedder: Embedder, thread: int) -> int:
        barrier.wait()
        check = {"first": 7 * thread, "number": number}
        return count_different(embedder.embed, batches, expected, **check)

    def in_threads(embedders: Sequence[Embedder]) -> int:
        with ThreadPoolExecutor(num_threads) as pool:
            return sum(pool.map(work, embedders, range(num_threads)))

    def in_fork() -> int:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return sum(pool.starmap(_in_child, [(shared, batches, expected, number)] * 2))

    async def in_coroutines() -> int:
        async def one(call: int) -> bool:
            found = await asyncio.to_thread(shared.embed, batches[call % len(batches)])
            return not all(map(np.array_equal, found, expected[call % len(batches)]))

        return sum(await asyncio.gather(*map(one, range(number))))

    with ThreadPoolExecutor(1) as other:  # this thread may have an event loop
        by_coroutines = other.submit(lambda: asyncio.run(in_coroutines())).result()
    results: dict[str, Any] = {
        "one_embedder": in_threads([shared] * num_threads),
        "several_embedders": in_threads(several),
        "fork": in_fork(),
        "asyncio": by_coroutines,
    }
    passed = not any(results.values())
    calls = {"threads": num_threads, "calls_per_thread": number}
    return {**calls, "different": results, "passed": passed}


def _in_child(embedder: Any, batches: list, expected: list, number: int) -> int:
    return count_different(embedder.embed, batches, expected, first=0, number=number)


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["stream", "loads", "calls"])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--number", type=int, help="of loads (200) or calls per thread (1000)")
    options = parser.parse_args()
    if options.what == "stream":
        results = soak_stream(options.minutes)
    elif options.what == "loads":
        results = soak_loads(options.number or 200)
    else:
        results = soak_calls(options.threads, options.number or 1000)
    print_result(f"soak_{options.what}", vars(options), results)
    sys.exit(0 if results["passed"] else 1)


if __name__ == "__main__":
    main()
