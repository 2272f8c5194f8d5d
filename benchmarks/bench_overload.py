"""`elmokit serve` at three times what it can do, and short requests beside long ones.

    python benchmarks/bench_overload.py [--model en] [--text wiki.txt]

1. Goodput: 18 requests at once that together need three times the limit of time; how many are
answered, and how soon the others are refused. 2. Fairness: clients that ask for 2,000 words again
and again, and others for six; the times of both. The number of words is scaled to the speed of the
machine (``words_per_second``, measured first).
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import print_result
from texts import read_text

NUM_REQUESTS, OVERLOAD = 18, 3
LONG_WORDS, SHORT_WORDS = 2000, 6
NUM_LONG_CLIENTS, NUM_SHORT_CLIENTS = 16, 4


@contextmanager
def served(model: str, *options: str) -> Iterator[str]:
    """Yield the address of a server with one thread."""
    command = [sys.executable, "-m", "elmokit", "serve", "-m", model, *options]
    command += ["--port", "18766", "--threads", "1", "--max-words", "100000"]
    address = "http://127.0.0.1:18766"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"{address}/health").close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield address
        finally:
            process.terminate()


def ask(address: str, texts: list[str]) -> tuple[int, float]:
    """Return the status and the seconds of a request."""
    body = json.dumps({"inputs": texts}).encode()
    request = urllib.request.Request(f"{address}/embed", body, {"Content-Type": "application/json"})
    started = time.perf_counter()
    try:
        with urllib.request.urlopen(request) as answer:
            answer.read()
            status = answer.status
    except urllib.error.HTTPError as error:
        with error:
            error.read()
        status = error.code
    return status, time.perf_counter() - started


def texts_of(words: Iterator[str], num_words: int, *, a_text: int = 25) -> list[str]:
    """Return the next words as texts of the length of a sentence."""
    taken = list(itertools.islice(words, num_words))
    return [" ".join(taken[i : i + a_text]) for i in range(0, num_words, a_text)]


def goodput(model: str, words: Iterator[str], rate: float, limit: float) -> dict[str, Any]:
    """Ask for three times what can be computed in the limit, all at once."""
    num_words = int(OVERLOAD * rate * limit / NUM_REQUESTS)
    with served(model, "--timeout", str(limit), "--max-texts", "100000") as address:
        requests = [texts_of(words, num_words) for _ in range(NUM_REQUESTS)]
        with ThreadPoolExecutor(NUM_REQUESTS) as pool:
            done = list(pool.map(lambda texts: ask(address, texts), requests))
    refused = [seconds for status, seconds in done if status == 503]
    answered = [seconds for status, seconds in done if status == 200]
    return {
        "words_a_request": num_words, "limit_seconds": limit, "answered": len(answered),
        "latest_answer_seconds": max(answered, default=None), "refused": len(refused),
        "median_refusal_seconds": statistics.median(refused) if refused else None,
    }  # fmt: skip


def fairness(model: str, words: Iterator[str], seconds: float) -> dict[str, Any]:
    """Let long and short requests compete; a text of 2,000 words cannot be divided."""
    until = time.perf_counter() + seconds

    def client(address: str, num_words: int) -> list[float]:
        times = []
        texts = texts_of(words, num_words, a_text=num_words)
        while time.perf_counter() < until:
            status, taken = ask(address, texts)
            if status == 200:
                times.append(taken)
            else:
                time.sleep(0.1)
        return times

    with served(model) as address:
        sizes = [LONG_WORDS] * NUM_LONG_CLIENTS + [SHORT_WORDS] * NUM_SHORT_CLIENTS
        with ThreadPoolExecutor(len(sizes)) as pool:
            times = list(pool.map(lambda size: client(address, size), sizes))
    results = {}
    for name, own in (("long", times[:NUM_LONG_CLIENTS]), ("short", times[NUM_LONG_CLIENTS:])):
        all_times = sorted(itertools.chain(*own))
        results[name] = {
            "requests": len(all_times), "p50_seconds": statistics.median(all_times),
            "p95_seconds": all_times[int(0.95 * len(all_times))],
        }  # fmt: skip
    return results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="en")
    parser.add_argument("--text", type=Path, help="a sentence a line; default: the demo's text")
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    words = itertools.cycle([word for sentence in read_text(options.text) for word in sentence])
    with served(options.model, "--max-texts", "100000") as address:
        ask(address, texts_of(words, 2000))
        _, seconds = ask(address, texts_of(words, 20_000))
    rate = 20_000 / seconds
    results = {
        "words_per_second": rate,
        "goodput": goodput(options.model, words, rate, options.limit),
        "fairness": fairness(options.model, words, options.seconds),
    }
    print_result("overload", {"limit": options.limit, "seconds": options.seconds}, results)


if __name__ == "__main__":
    main()
