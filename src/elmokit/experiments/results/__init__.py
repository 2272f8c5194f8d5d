"""What the runs of an experiment found: compared, as tables, as plots."""
