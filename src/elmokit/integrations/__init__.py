"""elmokit inside other libraries: a file and an extra for each.

Nothing here computes anything of its own: every vector comes from `Embedder` or the same biLM.
"""
