"""Formats of embedding files: one file each, listed in `registry`."""
