"""Making the runs of an experiment, and keeping those that are finished."""
