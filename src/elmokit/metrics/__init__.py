"""Predictions and gold answers → numbers. NumPy only."""
