"""Sentences → vectors → files; start at `embedder.Embedder` and `job.embed_lines`."""
