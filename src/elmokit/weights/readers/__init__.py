"""Readers of models in the formats of other software; see `elmokit.weights.readers.registry`."""
