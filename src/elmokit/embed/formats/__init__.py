"""Formats of embedding files: one file each that writes and reads it, listed in `registry`."""
