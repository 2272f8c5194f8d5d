"""Corpora of any length: text files to sentences, to shards on disk, to training windows.

NumPy only, no torch; memory never depends on the length of the corpus:

    files  --readers-->  sentences  --shards-->  shard directory  --stream-->  windows

`hold_out` takes a few sentences aside for validation on the way from readers to shards.
"""
