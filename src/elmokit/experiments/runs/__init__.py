"""Executes the runs of an experiment and stores their results."""
