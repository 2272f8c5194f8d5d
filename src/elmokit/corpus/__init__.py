"""Text files to sentences, shards on disk and training windows, in bounded memory without torch.

files  --readers-->  sentences  --text_shards-->  shard directory  --stream-->  windows
"""
