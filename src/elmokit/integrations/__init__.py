"""Glue to other libraries: one file for each, each behind an extra."""
