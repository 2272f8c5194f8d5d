"""What every measured program shares: its request and its answer, and the clock of embedding.

Only the standard library and NumPy are used here: this runs in the programs' own environments. A
program is called with ``embed`` or ``train``, a file of JSON to read and one to write.
"""

import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

WARM_UP = 128
"""Sentences at most, of a first call that does what a program does on first use."""


def read_request() -> dict[str, Any]:
    """Return what is asked for."""
    return json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))


def answer(packages: Sequence[str], **facts: Any) -> None:
    """Answer, with the versions of installed distributions."""
    versions = {name: version(name) for name in packages}
    text = json.dumps({"versions": versions, **facts})
    Path(sys.argv[3]).write_text(text, encoding="utf-8")


def time_embedding(
    calls: list[list[list[str]]],
    embed: Callable[[list[list[str]]], Sequence[np.ndarray]],
    reset: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Return the seconds of some calls, and the vectors of the first one if it is short.

    Args:
        calls: Sentences of each call.
        embed: Returns an array (layers, words, width) for every sentence of a call.
        reset: Forgets what earlier calls have left.
    """
    embed([["a"] * len(words) for words in calls[0][:WARM_UP]])
    reset()
    gc.collect()
    started = time.perf_counter()
    for sentences in calls:
        embed(sentences)
    seconds = time.perf_counter() - started
    reset()
    is_short = len(calls) == 1 and len(calls[0]) <= 8
    vectors = [np.asarray(one).tolist() for one in embed(calls[0])] if is_short else None
    return {"seconds": seconds, "vectors": vectors}
