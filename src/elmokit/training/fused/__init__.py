"""Layers of the biLM with hand-written gradients, partly in C. Tests hold them equal to `bilm`."""
