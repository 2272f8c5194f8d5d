"""The experiments, a file each, listed in `elmokit.experiments.registry`."""
