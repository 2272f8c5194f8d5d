"""Embedding speed of ONNX Runtime beside our own, with the same weights on one thread or more.

    python benchmarks/bench_onnx.py [MODEL] [--threads 1] [--rounds 5] [--sentences 512]

Both embed the same sentences of the demo text, sorted by length, 32 a call, in turn; ours without
its word cache. Prints words per second and the ratio, for fp32 and for int8 weights; ONNX Runtime
computes in fp32 in both cases, ours with integers in the second.
"""

import argparse
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from common import Spread, alternate, print_result, speed_ratio

from elmokit import Embedder, load_model
from elmokit.weights.onnx_file import INPUT, write_onnx

BATCH = 32
PRECISIONS = {"fp32": "float32", "int8": "int8"}
"""Of `Embedder` -> storage of the ONNX file."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="en")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=512)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    text = files("elmokit").joinpath("data/demo/en.txt").read_text(encoding="utf-8")
    sentences = sorted((line.split() for line in text.splitlines() if line.strip()), key=len)
    sentences = sentences[: arguments.sentences]
    num_words = sum(map(len, sentences))
    batches = [sentences[k : k + BATCH] for k in range(0, len(sentences), BATCH)]
    model = load_model(arguments.model)
    ids = [model.char_vocab.encode(batch).astype(np.int64) for batch in batches]
    results: dict[str, Any] = {}
    for precision, dtype in PRECISIONS.items():
        embedder = Embedder(model, device="cpu", precision=precision, word_cache=False)
        session = _session(model, dtype, arguments.threads)

        def ours(embedder: Embedder = embedder) -> float:
            started = time.perf_counter()
            for batch in batches:
                embedder.embed(batch)
            return time.perf_counter() - started

        def theirs(session: Any = session) -> float:
            started = time.perf_counter()
            for one in ids:
                session.run(None, {INPUT: one})
            return time.perf_counter() - started

        seconds = alternate({"elmokit": ours, "onnxruntime": theirs}, repeats=arguments.rounds)
        rates = {name: [num_words / value for value in times] for name, times in seconds.items()}
        results[precision] = {
            **{name: round(Spread.of(rate).median) for name, rate in rates.items()},
            "ratio": round(speed_ratio(seconds["elmokit"], seconds["onnxruntime"]).median, 2),
        }
    print_result("onnx", vars(arguments), results)


def _session(model: Any, dtype: Any, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        write_onnx(model, path, dtype=dtype)
        return onnxruntime.InferenceSession(str(path), options)


if __name__ == "__main__":
    main()
