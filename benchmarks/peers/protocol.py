"""The side of the conversation that every measured program speaks: JSON lines, one a request.

Only the standard library and NumPy are used here: this runs in the programs' own environments. A
request is ``{"do": NAME, ...}``, the answer the dictionary that the function of that name returns,
or ``{"error": ...}``. Whatever else a library prints goes to stderr.
"""

import gc
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np


class EmbeddingProgram:
    """What a program that embeds must offer."""

    packages: tuple[str, ...]
    """Distributions whose versions belong to the result."""
    keep_words = False
    """Whether a program may keep what it knows of words from call to call of a run."""

    def load(self, *, folder: str, threads: int, max_batch: int, settings: dict[str, Any]) -> None:
        """Load the weights in ``folder`` (options.json, weights.hdf5)."""
        raise NotImplementedError

    def prepare(self, words: Sequence[str]) -> None:
        """Do what may be done before the clock starts, with the distinct words to come."""

    def begin_run(self, first_batch: list[list[str]]) -> None:
        """Forget what earlier runs have left (states, caches); outside the clock."""

    def embed(self, sentences: list[list[str]]) -> list[np.ndarray]:
        """Return an array (layers, words, width) for every sentence of one batch."""
        raise NotImplementedError


def open_channel() -> tuple[Iterator[dict[str, Any]], Callable[[dict[str, Any]], None]]:
    """Return the requests, and what sends an answer."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return map(json.loads, sys.stdin), lambda it: print(json.dumps(it), file=answers, flush=True)


def serve(handlers: dict[str, Callable[..., dict[str, Any]]]) -> None:
    """Answer requests until stdin ends."""
    requests, answer = open_channel()
    for request in requests:
        try:
            content = handlers[request.pop("do")](**request)
        except BaseException as error:  # whatever it is, the other side must hear of it
            traceback.print_exc()
            content = {"error": f"{type(error).__name__}: {error}"}
        answer(content)


def serve_embedding(program: EmbeddingProgram) -> None:
    """Answer the requests of `bench_embed.py`."""
    calls: list[list[list[str]]] = []

    def load(**settings: Any) -> dict[str, Any]:
        program.load(**settings)
        return {"versions": versions(program.packages)}

    def prepare(batches: list[list[list[str]]], keep_words: bool) -> dict[str, Any]:
        calls[:] = batches
        program.keep_words = keep_words
        program.prepare(sorted({word for batch in batches for words in batch for word in words}))
        return {}

    def run() -> dict[str, Any]:
        program.begin_run(calls[0])
        gc.collect()
        started = time.perf_counter()
        for batch in calls:
            program.embed(batch)
        return {"seconds": time.perf_counter() - started}

    def vectors(path: str) -> dict[str, Any]:
        program.begin_run(calls[0])
        arrays = [array for batch in calls for array in program.embed(batch)]
        np.savez(path, *[np.asarray(array, dtype=np.float32) for array in arrays])
        return {}

    def peak() -> dict[str, Any]:
        unit = 1 if sys.platform == "darwin" else 1024
        return {"bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}

    serve({"load": load, "prepare": prepare, "run": run, "vectors": vectors, "peak": peak})


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of installed distributions."""
    return {name: version(name) for name in packages}
