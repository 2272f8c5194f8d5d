"""Sentences → vectors → files: the fast inference path and what users call to get embeddings.

`embedder.Embedder` is the entry point in Python, `job.embed_files` that of the command line;
`writers` has the formats of embedding files. Tests hold the numbers equal to those of the plain
modules in ``bilm``.
"""
