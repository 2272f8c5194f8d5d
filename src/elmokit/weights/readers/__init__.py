"""Readers of models in the formats of other software; see `elmokit.weights.readers.registry`.

A reader is a pair of functions over the `Contents` of a source: ``recognizes(contents)`` and
``read(contents)``, which returns an `ImportedModel`.
"""

from dataclasses import dataclass

from elmokit.weights.stored_bilm import StoredBiLM


@dataclass(frozen=True, kw_only=True)
class ImportedModel:
    """A model of other software; trained mixtures of its layers are its ``mixes``."""

    model: StoredBiLM
    origin: str
    """The files that it was read from."""
    notes: tuple[str, ...] = ()
    """What was assumed or left out, a sentence each."""
