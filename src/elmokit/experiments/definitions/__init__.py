"""One file per experiment, listed in `elmokit.experiments.registry`."""
