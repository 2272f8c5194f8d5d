"""`elmokit serve` under load: capacity, half of it, four times of it.

    python benchmarks/bench_server.py [--model en] [--text wiki.txt] [--seconds 20]

The server runs in a process of its own with one thread; this one is the clients. Part by part:

1. Capacity: 64 clients ask for a sentence each, again as soon as they have their answer, in turns
   with one `Embedder.embed_sentences` call of the same sentences here. The ratio is taken within a
   turn.
2. One client, each request after the answer to the last.
3. Half and four times the capacity: requests begin at random (Poisson); times are from when a
   request should have begun.
"""

import argparse
import asyncio
import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from itertools import chain, cycle
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from common import (
    alternate,
    listening,
    new_parser,
    print_result,
    read_text,
    speed_ratio,
    text_metadata,
)

from elmokit import Embedder

NUM_CLIENTS = 64
HEAD = (
    "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
)
Answer = tuple[int, float]
"""Status (0: a broken connection) and seconds."""
Ask = Callable[..., Coroutine[Any, Any, Answer]]


def run_clients(port: int, clients: Sequence[Callable[[Ask], Any]]) -> list[list[Answer]]:
    """Let clients ask a server at the same time, over connections that are kept.

    HTTP is written by hand, so that it takes little of the machine.
    """
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(text: str, begun: float | None = None) -> Answer:
        begun = time.perf_counter() if begun is None else begun
        body = json.dumps({"inputs": text}).encode()
        try:
            pair = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
            reader, writer = pair
            writer.write(f"{HEAD}{len(body)}\r\n\r\n".encode() + body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            idle.append(pair)
            status = int(head[9:12])
        except (ConnectionError, asyncio.IncompleteReadError):
            status = 0
        return status, time.perf_counter() - begun

    async def work() -> list[list[Answer]]:
        answers = await asyncio.gather(*(client(ask) for client in clients))
        for _, writer in idle:
            writer.close()
        return answers

    return asyncio.run(work())


def in_turn(port: int, texts: Sequence[str], *, num_clients: int) -> list[Answer]:
    """Let some clients ask for all texts, each for the next one after its answer."""
    rest = iter(texts)

    async def client(ask: Ask) -> list[Answer]:
        return [await ask(text) for text in rest]

    return list(chain(*run_clients(port, [client] * num_clients)))


def at_random(port: int, texts: Sequence[str], per_second: float, seconds: float) -> list[Answer]:
    """Begin requests at a rate, whether others are answered or not."""
    due = random.Random(1)

    async def clients(ask: Ask) -> list[Answer]:
        started = at = time.perf_counter()
        requests: list[asyncio.Task[Answer]] = []
        for text in cycle(texts):
            at += due.expovariate(per_second)
            if at > started + seconds:
                break
            # who is late gives way now and then, or no answer would be read
            if (left := at - time.perf_counter()) > 0 or len(requests) % 8 == 0:
                await asyncio.sleep(max(left, 0))
            requests.append(asyncio.create_task(ask(text, at)))
        return list(await asyncio.gather(*requests))

    return run_clients(port, [clients])[0]


def summary(answers: Iterable[Answer]) -> dict[str, Any]:
    """Return how many answers had each status, and percentiles of their seconds."""
    by_status: dict[int, list[float]] = defaultdict(list)
    for status, seconds in answers:
        by_status[status].append(seconds)
    return {
        str(status): {
            "answers": len(seconds),
            **{f"p{one}_seconds": float(np.percentile(seconds, one)) for one in (50, 95, 99, 100)},
        }
        for status, seconds in sorted(by_status.items())
    }


def capacity(options: argparse.Namespace, texts: Sequence[str]) -> dict[str, Any]:
    """Compare the server with one call, and load it with half and four times its capacity."""
    embedder = Embedder.load(options.model, num_threads=1)
    with listening("serve", "-m", options.model, "--threads", "1") as address:
        port = urlsplit(address).port or 0

        def run(name: str) -> float:
            begun = time.perf_counter()
            if name == "one call":
                embedder.embed_sentences(texts)
            else:
                answers = in_turn(port, texts, num_clients=NUM_CLIENTS)
                assert {status for status, _ in answers} == {200}
            return time.perf_counter() - begun

        clock = alternate(("server", "one call"), run, repeats=options.repeats)
        per_second = len(texts) / median(clock["server"])
        return {
            "capacity_per_second": per_second,
            "share_of_one_call": speed_ratio(clock["server"], clock["one call"]),
            "one_client": summary(in_turn(port, texts[:200], num_clients=1)),
            "half": summary(at_random(port, texts, per_second / 2, options.seconds)),
            "four_times": summary(at_random(port, texts, 4 * per_second, options.seconds)),
        }


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--model", default="en")
    parser.add_argument("--text", type=Path, help="one sentence per line; default: the demo's text")
    parser.add_argument("--sentences", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="of part 3")
    options = parser.parse_args()
    sentences = read_text(options.text)[: options.sentences]
    results = capacity(options, [" ".join(words) for words in sentences])
    sizes = {"model": options.model, **text_metadata(sentences, options.text)}
    print_result("server", sizes, results)


if __name__ == "__main__":
    main()
