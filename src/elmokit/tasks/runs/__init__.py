"""A task run: its settings, its training, its directory."""
