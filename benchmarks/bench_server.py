"""`elmokit serve` under load: capacity, half of it, four times of it, and requests of unlike size.

    python benchmarks/bench_server.py [--model en] [--text wiki.txt] [--seconds 20]

The server runs in a process of its own with one thread; this one is the clients. Part by part:

1. Capacity: 64 clients ask for a sentence each, again as soon as they have their answer, in turns
   with one `Embedder.embed_sentences` call of the same sentences in a third process. The ratio is
   taken within a turn, in seconds of the clock and of the processor that each process used.
2. One client, each request after the answer to the last.
3. Half and four times the capacity: requests begin at random (Poisson); times are from when a
   request should have begun.
4. Goodput: 18 requests at once that together need three times the limit of time.
5. Fairness: 16 clients that ask for 2,000 words again and again beside 4 that ask for six.
"""

import argparse
import asyncio
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
from common import Spread, alternate, print_result, speed_ratio
from inputs import read_text, text_metadata

NUM_CLIENTS = 64
NUM_REQUESTS, OVERLOAD = 18, 3
LONG_WORDS, SHORT_WORDS = 2000, 6
NUM_LONG_CLIENTS, NUM_SHORT_CLIENTS = 16, 4
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


class Answers:
    """The seconds of each answer, by its status."""

    def __init__(self) -> None:
        self.seconds: dict[int, list[float]] = {}

    @property
    def statuses(self) -> dict[int, int]:
        """How many answers had each status."""
        return {status: len(seconds) for status, seconds in self.seconds.items()}

    def percentile(self, percent: int, status: int = 200) -> float | None:
        """Return so much of the distribution of a status, in seconds."""
        ordered = sorted(self.seconds.get(status, ()))
        return ordered[(len(ordered) - 1) * percent // 100] if ordered else None


class Client:
    """Asks with connections that are kept and used again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, texts: Sequence[str], answers: Answers, begun: float | None = None) -> int:
        """Ask for vectors and note the answer; a broken connection has status 0."""
        begun = time.perf_counter() if begun is None else begun
        body = json.dumps({"inputs": list(texts)}).encode()
        try:
            pair = self._idle.pop() if self._idle else None
            reader, writer = pair or await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(f"{HEAD}{len(body)}\r\n\r\n".encode() + body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            self._idle.append((reader, writer))
            status = int(head[9:12])
        except (ConnectionError, asyncio.IncompleteReadError):
            status = 0
        answers.seconds.setdefault(status, []).append(time.perf_counter() - begun)
        return status

    def run(self, clients: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Let clients ask at the same time, then close the connections, which end with the loop."""

        async def work() -> None:
            await asyncio.gather(*clients)
            for _, writer in self._idle:
                writer.close()
            self._idle.clear()

        asyncio.run(work())

    def in_a_row(self, texts: Sequence[str], *, num_clients: int = NUM_CLIENTS) -> Answers:
        """Let some clients ask for all texts, each one after the other."""
        answers, rest = Answers(), iter(texts)

        async def client() -> None:
            for text in rest:
                await self.ask([text], answers)

        self.run([client() for _ in range(num_clients)])
        return answers

    def at_random(self, texts: Sequence[str], per_second: float, seconds: float) -> Answers:
        """Begin requests at a rate, whether others are answered or not."""
        answers, due = Answers(), random.Random(1)

        async def clients() -> None:
            started = at = time.perf_counter()
            requests: list[asyncio.Task[int]] = []
            for text in itertools.cycle(texts):
                at += due.expovariate(per_second)
                if at > started + seconds:
                    break
                if (left := at - time.perf_counter()) > 0 or len(requests) % 8 == 0:
                    await asyncio.sleep(max(left, 0))
                requests.append(asyncio.create_task(self.ask([text], answers, at)))
            await asyncio.gather(*requests)

        self.run([clients()])
        return answers

    def at_once(self, requests: Sequence[Sequence[str]]) -> Answers:
        """Begin all requests at the same time."""
        answers = Answers()

        async def client(texts: Sequence[str]) -> None:
            await self.ask(texts, answers)

        self.run([client(texts) for texts in requests])
        return answers

    def for_a_while(self, texts: Sequence[str], seconds: float) -> list[Answers]:
        """Let one client for each text ask for it again and again."""
        until, every = time.perf_counter() + seconds, [Answers() for _ in texts]

        async def client(text: str, answers: Answers) -> None:
            while time.perf_counter() < until:
                if await self.ask([text], answers) != 200:
                    await asyncio.sleep(0.1)

        self.run(list(map(client, texts, every)))
        return every


@contextmanager
def served(model: str, *options: str) -> Iterator[tuple[psutil.Process, Client]]:
    """Start `elmokit serve` with one thread on a free port."""
    command = [sys.executable, "-m", "elmokit", "serve", "-m", model, "--port", "0"]
    command += ["--threads", "1", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = next(line for line in process.stderr if line.startswith("http://"))
            port = int(line.split("/")[2].rpartition(":")[2])
            yield psutil.Process(process.pid), Client(port)
        finally:
            process.terminate()


def capacity(options: argparse.Namespace, texts: Sequence[str]) -> dict[str, Any]:
    """Compare the server with one call, and load it with half and four times its capacity."""
    processor: dict[str, list[float]] = {"server": [], "one call": []}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-c", EMBED, options.model]
    with (
        served(options.model) as (process, client),
        subprocess.Popen(command, text=True, **pipes) as alone,
    ):

        def one_call() -> float:
            alone.stdin.write(json.dumps(list(texts)) + "\n")
            alone.stdin.flush()
            clock, used = map(float, alone.stdout.readline().split())
            processor["one call"].append(used)
            return clock

        def clients() -> float:
            before, begun = sum(process.cpu_times()[:2]), time.perf_counter()
            answers = client.in_a_row(texts)
            seconds = time.perf_counter() - begun
            assert answers.statuses == {200: len(texts)}, answers.statuses
            processor["server"].append(sum(process.cpu_times()[:2]) - before)
            return seconds

        programs: dict[str, Callable[[], float]] = {"server": clients, "one call": one_call}
        clock = alternate(programs, repeats=options.repeats)
        alone.stdin.close()
        per_second = len(texts) / Spread.of(clock["server"]).median
        ratio = speed_ratio(processor["server"][1:], processor["one call"][1:])
        results: dict[str, Any] = {
            "capacity_per_second": per_second,
            "share_of_one_call": asdict(speed_ratio(clock["server"], clock["one call"])),
            "share_of_one_call_processor": asdict(ratio),
            "one_client_p50_seconds": client.in_a_row(texts[:200], num_clients=1).percentile(50),
        }
        for name, times in (("half", 0.5), ("four_times", 4.0)):
            answers = client.at_random(texts, times * per_second, options.seconds)
            results[name] = {
                "statuses": answers.statuses,
                "p50_seconds": answers.percentile(50),
                "p99_seconds": answers.percentile(99),
            }
    return results


def goodput(model: str, words: Iterator[str], rate: float, limit: float) -> dict[str, Any]:
    """Ask for three times what can be computed in the limit, all at once."""
    num_words = int(OVERLOAD * rate * limit / NUM_REQUESTS)
    requests = [texts_of(words, num_words) for _ in range(NUM_REQUESTS)]
    settings = ("--timeout", str(limit), "--max-texts", "100000", "--max-words", "100000")
    with served(model, *settings) as (_, client):
        answers = client.at_once(requests)
    return {
        "words_a_request": num_words,
        "limit_seconds": limit,
        "statuses": answers.statuses,
        "latest_answer_seconds": answers.percentile(100),
        "median_refusal_seconds": answers.percentile(50, 503),
    }


def fairness(model: str, words: Iterator[str], seconds: float) -> dict[str, Any]:
    """Let long and short requests compete; a text of 2,000 words cannot be divided."""
    sizes = [LONG_WORDS] * NUM_LONG_CLIENTS + [SHORT_WORDS] * NUM_SHORT_CLIENTS
    texts = [" ".join(itertools.islice(words, size)) for size in sizes]
    with served(model, "--max-words", "100000") as (_, client):
        every = client.for_a_while(texts, seconds)
    results = {}
    for name, part in (("long", every[:NUM_LONG_CLIENTS]), ("short", every[NUM_LONG_CLIENTS:])):
        answered = sorted(itertools.chain(*(one.seconds.get(200, ()) for one in part)))
        results[name] = {
            "requests": len(answered),
            "p50_seconds": statistics.median(answered),
            "p95_seconds": answered[int(0.95 * len(answered))],
        }
    return results


def texts_of(words: Iterator[str], num_words: int, *, a_text: int = 25) -> list[str]:
    """Return the next words as texts of the length of a sentence."""
    taken = list(itertools.islice(words, num_words))
    return [" ".join(taken[start : start + a_text]) for start in range(0, num_words, a_text)]


def words_per_second(model: str, words: Iterator[str]) -> float:
    """Return how fast the server computes one large request, after a first one."""
    with served(model, "--max-texts", "100000", "--max-words", "100000") as (_, client):
        for num_words in (2000, 20_000):
            answers = client.at_once([texts_of(words, num_words)])
    return 20_000 / answers.seconds[200][0]


def main() -> None:
    """Measure part by part and print one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="en")
    parser.add_argument("--text", type=Path, help="one sentence per line; default: the demo's text")
    parser.add_argument("--sentences", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="of parts 3 and 5")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds, of part 4")
    parser.add_argument("--only", choices=["capacity", "overload"], help="parts 1–3 or 4–5")
    options = parser.parse_args()
    sentences = read_text(options.text)[: options.sentences]
    words = itertools.cycle([word for sentence in sentences for word in sentence])
    results: dict[str, Any] = {}
    if options.only != "overload":
        results |= capacity(options, [" ".join(words) for words in sentences])
    if options.only != "capacity":
        rate = words_per_second(options.model, words)
        results["words_per_second"] = rate
        results["goodput"] = goodput(options.model, words, rate, options.limit)
        results["fairness"] = fairness(options.model, words, options.seconds)
    sizes = {"model": options.model, **text_metadata(sentences, options.text)}
    print_result("server", sizes, results)


if __name__ == "__main__":
    main()
