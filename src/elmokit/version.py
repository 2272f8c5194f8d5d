"""The version of elmokit, below everything that records it."""

__version__ = "0.2.0.dev0"
