"""int8 embedding beside the int8 products that oneDNN computes for the same network.

    python benchmarks/bench_int8.py [--rounds 9]

Both work on one thread, in turns, and the processor time of the thread counts, so that other
programs disturb little. ``share`` is the time that oneDNN (`torch.ops.onednn.qlinear_pointwise`)
takes for the matrix products alone, each at its own fastest number of rows, over our time for
everything: text to ids, character CNN, conversions, gates, outputs. 1 would be an LSTM that costs
nothing but its products. The products of the token layer count once for each distinct word.
Without matrix instructions for int8 the figure says nothing.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from common import model_folder, new_parser, print_result, read_text, spread, text_metadata

import elmokit

ROWS = (64, 256, 1024)
NUM_SENTENCES = 64


def product(outer: int, inner: int, rows: int) -> Callable[[], Any]:
    """Return a call of oneDNN's product of ``rows`` rows with a matrix (outer, inner)."""
    weight = torch.randint(-127, 128, (outer, inner), dtype=torch.int8)
    x = torch.randint(0, 256, (rows, inner), dtype=torch.uint8)
    packed = torch.ops.onednn.qlinear_prepack(weight, [rows, inner])
    scales, zeros = torch.ones(outer), torch.zeros(outer, dtype=torch.int64)
    arguments = (x, 1.0, 0, packed, scales, zeros, None, 1.0, 0, torch.float32, "none", [], "")
    return lambda: torch.ops.onednn.qlinear_pointwise(*arguments)


def seconds_of(call: Callable[[], Any]) -> float:
    """Return the time of this thread."""
    started = time.thread_time()
    call()
    return time.thread_time() - started


def matrices(model: elmokit.PretrainedBiLM, tokens: int, words: int) -> dict[tuple[int, int], int]:
    """Return the shapes of the network's int8 matrices, and how many rows each multiplies."""
    rows: Counter[tuple[int, int]] = Counter()
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2 and "embedding" not in name and "softmax" not in name:
            rows[tuple(parameter.shape)] += words if "token_encoder" in name else tokens
    return rows


def measure(shape: str, sentences: list[list[str]], rounds: int) -> dict[str, Any]:
    """Return share and rates of a shape."""
    folder = model_folder(shape) / "model"
    embedder = elmokit.Embedder.load(folder, precision="int8", num_threads=1, word_cache=False)
    tokens = sum(map(len, sentences)) + 2 * len(sentences)
    words = len({word for sentence in sentences for word in sentence}) + 2
    needed = matrices(elmokit.load_model(folder), tokens, words)
    calls = {(outer, inner, m): product(outer, inner, m) for outer, inner in needed for m in ROWS}
    best: dict[tuple[int, int], float] = {}
    shares, times = [], []
    for number in range(rounds + 1):  # the first warms up
        own = seconds_of(lambda: embedder.embed(sentences))
        rates = {
            key: min(seconds_of(call) for _ in range(5)) / key[2] for key, call in calls.items()
        }
        best = {one: min(rates[*one, m] for m in ROWS) for one in needed}
        if number:
            times.append(own)
            shares.append(sum(best[one] * count for one, count in needed.items()) / own)
    return {
        "share": spread(shares),
        "tokens_per_second": round(tokens / min(times)),
        "onednn_gop_per_second": {
            f"{outer} x {inner}": round(2 * outer * inner / seconds / 1e9)
            for (outer, inner), seconds in best.items()
        },
    }


def main() -> None:
    """Measure and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    sentences = read_text(None)[:NUM_SENTENCES]
    results = {shape: measure(shape, sentences, rounds) for shape in ("small", "original")}
    print_result("int8", text_metadata(sentences, None), results)


if __name__ == "__main__":
    main()
