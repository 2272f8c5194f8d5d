"""Layers of the biLM with hand-written gradients, partly in C; equal to the plain ones."""
