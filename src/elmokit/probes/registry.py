"""The probes by name: each is a module of this package with a `Probe` called ``PROBE``.

No heavy imports here: `elmokit probe --help` reads this module.
"""

from importlib import import_module
from typing import Any

from elmokit.errors import find_named

PROBES = {
    "pos": ("pos", "parts of speech by a linear classifier; reads train… and dev… files"),
    "wsd": ("wsd", "word senses by centroids and nearest words; reads semcor and a test set"),
    "neighbors": ("sense_neighbors", "do nearest occurrences share their sense; reads semcor"),
}
"""Name -> module and help."""


def find_probe(name: str) -> Any:
    module, _ = find_named(PROBES, name, what="probe")
    return import_module(f"elmokit.probes.{module}").PROBE


def describe_probes() -> str:
    return ". ".join(f"{name}: {text}" for name, (_, text) in PROBES.items())
