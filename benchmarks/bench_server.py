"""`elmokit serve` under load: one client, 64 of them, half of what it can do, four times that.

    python benchmarks/bench_server.py [--model en] [--text wiki.txt] [--seconds 20] [--write]

The server runs in a process of its own with one thread; this one is the clients (keep-alive
connections, POST /embed with one sentence). 1. Capacity: 64 clients ask, each again as soon as it
has its answer, in turns with one `Embedder.embed_sentences` call of the same sentences in a third
process; the ratio is taken within a turn, in seconds of the clock and in seconds of the processor
that each process used. The clock counts the clients, too, where they share the server's cores; the
processor's seconds do not depend on other programs. 2. One client, each request after the answer to
the last. 3. Half load: requests begin at random (Poisson) at half the capacity; times are from when
a request should have begun. 4. Overload: the same at four times the capacity.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from common import (
    Spread,
    alternate,
    describe,
    markdown_page,
    markdown_table,
    speed_ratio,
    write_page,
)
from texts import read_text, text_metadata

NUM_CLIENTS = 64
HEAD = (
    "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
)
EMBED = """
import json, sys, time
from elmokit.embed.embedder import Embedder
embedder = Embedder.load(sys.argv[1], num_threads=1)
for line in sys.stdin:
    texts = json.loads(line)
    clock, processor = time.perf_counter(), time.process_time()
    embedder.embed_sentences(texts)
    print(time.perf_counter() - clock, time.process_time() - processor, flush=True)
"""


@dataclass
class Seen:
    """Answers, and how long they took."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """Of those with status 200."""

    def add(self, status: int, seconds: float) -> None:
        """Note an answer."""
        self.statuses[status] += 1
        if status == 200:
            self.seconds.append(seconds)

    def percentile(self, share: float) -> float:
        """Return so much of the distribution, in milliseconds."""
        return (
            1000 * sorted(self.seconds)[min(int(share * len(self.seconds)), len(self.seconds) - 1)]
        )


class Client:
    """Connections to the server, kept and used again."""

    def __init__(self, port: int, texts: Sequence[str]) -> None:
        self._port = port
        bodies = [json.dumps({"inputs": text}).encode() for text in texts]
        self._requests = [f"{HEAD}{len(body)}\r\n\r\n".encode() + body for body in bodies]
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, number: int) -> int:
        """Ask for a sentence; return the status."""
        pair = self._idle.pop() if self._idle else None
        reader, writer = pair or await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(self._requests[number % len(self._requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
        self._idle.append((reader, writer))
        return int(head[9:12])

    async def mean_batch(self) -> float:
        """Return how many sentences the server's batches had so far."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = (await reader.read()).decode()
        writer.close()
        values = dict(line.rpartition(" ")[::2] for line in text.splitlines())
        name = "te_batch_next_size"
        return float(values[f"{name}_sum"]) / float(values[f"{name}_count"])

    def close(self) -> None:
        """Close all connections."""
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def in_a_row(self, num_texts: int, *, num_clients: int = NUM_CLIENTS) -> Seen:
        """Let some clients ask for all sentences, each one after the other."""
        seen, numbers = Seen(), iter(range(num_texts))

        async def one() -> None:
            for number in numbers:
                begun = time.perf_counter()
                status = await self.ask(number)
                seen.add(status, time.perf_counter() - begun)

        await asyncio.gather(*(one() for _ in range(num_clients)))
        self.close()
        return seen

    async def at_random(self, per_second: float, seconds: float) -> tuple[Seen, float]:
        """Begin requests at a rate, whether others are answered or not; return the real rate."""
        seen, due = Seen(), random.Random(1)
        started = at = time.perf_counter()
        asked: list[asyncio.Task[None]] = []

        async def one(number: int, begun: float) -> None:
            try:
                status = await self.ask(number)
            except (ConnectionError, asyncio.IncompleteReadError):
                status = 0
            seen.add(status, time.perf_counter() - begun)

        while at < started + seconds:
            at += due.expovariate(per_second)
            if (left := at - time.perf_counter()) > 0:
                await asyncio.sleep(left)
            elif len(asked) % 8 == 0:
                await asyncio.sleep(0)
            asked.append(asyncio.create_task(one(len(asked), at)))
        rate = len(asked) / (time.perf_counter() - started)
        await asyncio.gather(*asked)
        self.close()
        return seen, rate


@contextmanager
def server(model: str) -> Iterator[tuple[psutil.Process, int]]:
    """Start `elmokit serve` on a free port."""
    command = [
        sys.executable,
        "-m",
        "elmokit",
        "serve",
        "-m",
        model,
        "--port",
        "0",
        "--threads",
        "1",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = next(line for line in process.stderr if line.startswith("http://"))
            yield psutil.Process(process.pid), int(line.split("/")[2].rpartition(":")[2])
        finally:
            process.terminate()


def used(process: psutil.Process) -> float:
    """Return the seconds of the processor that a process has used."""
    times = process.cpu_times()
    return times.user + times.system


def measure(options: argparse.Namespace, texts: Sequence[str]) -> dict[str, Any]:
    """Run all three parts."""
    processor: dict[str, list[float]] = {"server": [], "one call": []}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-c", EMBED, options.model]
    with (
        server(options.model) as (process, port),
        subprocess.Popen(command, text=True, **pipes) as alone,
    ):
        client = Client(port, texts)

        def one_call() -> float:
            alone.stdin.write(json.dumps(list(texts)) + "\n")
            alone.stdin.flush()
            clock, own = map(float, alone.stdout.readline().split())
            processor["one call"].append(own)
            return clock

        def clients() -> float:
            before, begun = used(process), time.perf_counter()
            seen = asyncio.run(client.in_a_row(len(texts)))
            seconds = time.perf_counter() - begun
            assert seen.statuses == {200: len(texts)}, seen.statuses
            processor["server"].append(used(process) - before)
            return seconds

        programs: dict[str, Callable[[], float]] = {"server": clients, "one call": one_call}
        clock = alternate(programs, repeats=options.repeats)
        alone.stdin.close()
        batch_size = asyncio.run(client.mean_batch())
        one_client = asyncio.run(client.in_a_row(min(200, len(texts)), num_clients=1))
        capacity = len(texts) / Spread.of(clock["server"]).median
        found: dict[str, Any] = {
            "one_client_p50_ms": one_client.percentile(0.5),
            "capacity_per_second": capacity,
            "sentences_per_batch": batch_size,
            "share_of_one_call": speed_ratio(clock["server"], clock["one call"]),
            "share_of_one_call_processor": speed_ratio(
                processor["server"][1:], processor["one call"][1:]
            ),
            "milliseconds_of_processor": {
                name: 1000 * Spread.of(times[1:]).median / len(texts)
                for name, times in processor.items()
            },
        }
        for name, times in (("half", 0.5), ("four times", 4.0)):
            load = os.getloadavg()[0]
            seen, rate = asyncio.run(client.at_random(times * capacity, options.seconds))
            found[name] = {
                "asked_per_second": rate, "statuses": dict(seen.statuses), "load": load,
                "answered_per_second": len(seen.seconds) / options.seconds,
                "p50_ms": seen.percentile(0.5), "p99_ms": seen.percentile(0.99),
            }  # fmt: skip
        assert process.is_running()
    return found


def page(found: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    shares = {
        "clock": found["share_of_one_call"], "processor": found["share_of_one_call_processor"]
    }  # fmt: skip
    spent = found["milliseconds_of_processor"]
    text = f"One client: {found['one_client_p50_ms']:.1f} ms a request (median). "
    text += f"Capacity with {NUM_CLIENTS} clients: {found['capacity_per_second']:.0f} sentences/s, "
    text += f"{found['sentences_per_batch']:.1f} in a batch.\n\n"
    text += markdown_table(
        ["seconds of the", "share of one call", "lowest–highest"],
        [[k, f"{s.median:.2f}", f"{s.low:.2f}–{s.high:.2f}"] for k, s in shares.items()],
    )
    text += f"\nProcessor per sentence: server {spent['server']:.2f} ms, one call "
    text += f"{spent['one call']:.2f} ms.\n\n"
    headers = ["load", "asked/s", "answered/s", "statuses", "p50 ms", "p99 ms", "others' load"]
    rows = []
    for name in ("half", "four times"):
        one = found[name]
        statuses = ", ".join(f"{status}: {n:,}" for status, n in sorted(one["statuses"].items()))
        rows.append([
            name, f"{one['asked_per_second']:.0f}", f"{one['answered_per_second']:.0f}", statuses,
            f"{one['p50_ms']:.0f}", f"{one['p99_ms']:.0f}", f"{one['load']:.1f}",
        ])  # fmt: skip
    return text + markdown_table(headers, rows)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="en")
    parser.add_argument("--text", type=Path, help="one sentence per line; default: the demo's text")
    parser.add_argument("--sentences", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="of half load and of overload")
    parser.add_argument("--write", action="store_true", help="keep the page of results")
    options = parser.parse_args()
    sentences = read_text(options.text)[: options.sentences]
    texts = [" ".join(words) for words in sentences]
    found = measure(options, texts)
    sizes = {"model": options.model, **text_metadata(sentences, options.text)}
    description = describe("server", sizes, found)
    body = page(found)
    print(body)
    if options.write:
        written = markdown_page("Server under load", description, f"{json.dumps(sizes)}\n\n{body}")
        print(write_page(f"server-{options.model}", description, written))


if __name__ == "__main__":
    main()
