"""Everything that learns: one loop, its checkpoints, and biLM pre-training built on it."""
