"""Embedding speed with the kernels of a wheel, beside kernels compiled on this machine.

    python benchmarks/bench_prebuilt.py [MODEL] [--rounds 5] [--sentences 2000]

Needs an installation from a wheel of `recipes/build_wheels.py`, and a C compiler for the other
side. Both sides take turns in fresh processes, which embed the same sentences of the demo text at
every precision. Prints the median ratio of the speeds, and whether the vectors have the same bits.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from importlib.resources import files
from statistics import median
from typing import Any

PRECISIONS = ("fp32", "bf16", "int8")
SIDES = {"prebuilt": "1", "compiled": "compile"}


def main() -> None:
    """Alternate both sides and print ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="en")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--side", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        print(json.dumps(measure(arguments.model, arguments.sentences)))
        return
    command = [sys.executable, __file__, arguments.model, "--side"]
    command += ["--sentences", str(arguments.sentences)]
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for _ in range(arguments.rounds):
        for side, switch in SIDES.items():
            environment = {**os.environ, "ELMOKIT_NATIVE": switch}
            done = subprocess.run(command, env=environment, check=True, capture_output=True)
            found[side].append(json.loads(done.stdout))
    for side, rounds in found.items():
        print(f"{side}: {rounds[0]['origin']}")
    for precision in PRECISIONS:
        speeds = {side: [one[precision][0] for one in rounds] for side, rounds in found.items()}
        pairs = zip(speeds["prebuilt"], speeds["compiled"], strict=True)
        ratio = median(prebuilt / compiled for prebuilt, compiled in pairs)
        bits = {one[precision][1] for rounds in found.values() for one in rounds}
        print(
            f"{precision}: {ratio:.3f} of the compiled kernels' {median(speeds['compiled']):,.0f} "
            f"words/s, {'the same bits' if len(bits) == 1 else 'OTHER BITS'}"
        )


def measure(model: str, num_sentences: int) -> dict[str, Any]:
    """Return words per second and a hash of the vectors for each precision."""
    from elmokit import Embedder
    from elmokit.kernels.build import origin

    demo = files("elmokit").joinpath("data/demo/en.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in demo.splitlines() if line.strip()]
    sentences = [lines[k % len(lines)] for k in range(num_sentences)]
    num_words = sum(map(len, sentences))
    result: dict[str, Any] = {"origin": origin("inference")}
    for precision in PRECISIONS:
        embedder = Embedder.load(model, precision=precision)
        embedder.embed(sentences[:50])
        started = time.perf_counter()
        digest = hashlib.sha256()
        for vectors in embedder.embed_stream(sentences):
            digest.update(vectors[:1].tobytes())
        result[precision] = num_words / (time.perf_counter() - started), digest.hexdigest()
    return result


if __name__ == "__main__":
    main()
