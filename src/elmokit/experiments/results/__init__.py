"""Comparisons, tables and plots of the runs of an experiment."""
