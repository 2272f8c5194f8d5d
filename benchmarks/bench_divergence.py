"""How far vectors depend on rounding: on natural text, and on long machine-like sentences.

    python benchmarks/bench_divergence.py --model en wiki/dev.txt.xz --model ko wiki-ko/dev.txt.xz

For each model (a packaged one or a directory) and text: the largest difference between the
compiled kernels and PyTorch, the change of the vectors if the token vectors change by 1e-6, and
the Lyapunov exponent of each direction (growth of a small change a token, in nats; above zero the
LSTM is chaotic there).
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from common import print_result

from elmokit import load_model
from elmokit.bilm.config import Direction
from elmokit.corpus.readers import read_sentences
from elmokit.inference.divergence import amplified
from elmokit.inference.engine import Engine
from elmokit.inference.frozen_bilm import FrozenBiLM
from elmokit.inference.state import LSTMState
from elmokit.inference.torch_backend import ModuleNetwork
from elmokit.text.tokenizers.registry import build_tokenizer

DISTANCE = 1e-4
"""Distance that the disturbed state is brought back to."""
CHUNK = 5
"""Tokens between two measurements of the distance."""
MACHINE_LIKE = {
    "1 2 … 2000": [str(number) for number in range(1, 2001)],
    "a table": [f"{i * 7919 % 1000}.{i * 31 % 10}" for i in range(1500)],
    "400 full stops": ["."] * 400,
    "600 dashes": ["-"] * 600,
}


def lyapunov(engine: Engine, vectors: np.ndarray, rows: np.ndarray, direction: Direction) -> float:
    """Return the mean growth of a disturbance of the state, in nats a token (Benettin's method)."""
    zeros = LSTMState.zeros(engine.network.config.lstm, 2).direction(direction)
    hidden, cell = (values.copy() for values in zeros)
    generator = np.random.default_rng(0)
    shift = [
        generator.standard_normal(values[:, 0].shape, dtype=np.float32) for values in (hidden, cell)
    ]
    growth = []
    chunks = [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]
    for chunk in chunks if direction == "forward" else chunks[::-1]:
        distance = math.sqrt(
            sum(float(np.square(values, dtype=np.float64).sum()) for values in shift)
        )
        growth.append(math.log(distance / DISTANCE))
        for values, change in zip((hidden, cell), shift, strict=True):
            values[:, 1] = values[:, 0] + change * (DISTANCE / distance)
        state = engine.read(direction, vectors, [chunk, chunk], (hidden, cell))
        hidden, cell = (values.copy() for values in state)
        shift = [values[:, 1] - values[:, 0] for values in (hidden, cell)]
    return float(np.mean(growth[10:])) / CHUNK  # the first ones turn into the fastest direction


def measure(name: str, natural: list[str]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the figures of one model, text by text."""
    model = load_model(name)
    bilm = FrozenBiLM(model)
    plain = Engine(ModuleNetwork(model.config, model.arrays(), use_bf16=False, device="cpu"))
    for text, words in {"natural text": natural, **MACHINE_LIKE}.items():
        vectors, tokens = bilm.encode([words])
        (rows,) = tokens.sentences
        ours, theirs = (engine.run(vectors, [rows]).vectors[0] for engine in (bilm.engine, plain))
        yield (
            text,
            {
                "words": len(words),
                "largest_value": float(np.abs(ours).max()),
                "kernels_against_pytorch": float(np.abs(ours - theirs).max()),
                "change_by_1e-6": amplified(bilm.engine, vectors[rows]),
                **{
                    f"lyapunov_{direction}": lyapunov(bilm.engine, vectors, rows, direction)
                    for direction in get_args(Direction)
                },
            },
        )


def main() -> None:
    """Measure both models and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model", nargs=2, action="append", required=True, metavar=("MODEL", "TEXT")
    )
    parser.add_argument("--words", type=int, default=2000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    for name, path in options.model:
        tokenizer = build_tokenizer(load_model(name).tokenizer)
        words: list[str] = []
        for sentence in read_sentences([Path(path)], tokenizer):
            words += sentence
            if len(words) >= options.words:
                break
        results[name] = dict(measure(name, words[: options.words]))
    print_result("divergence", {"words": options.words}, results)


if __name__ == "__main__":
    main()
