"""Sentences → vectors → files: the fast inference path and what users call to get embeddings.

`embedder.Embedder` is the door for Python, `job.embed_files` the one for the command line. The
numbers are those of the plain modules in ``nn``; tests hold the two equal.
"""
