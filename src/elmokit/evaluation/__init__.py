"""How well a language model predicts a text."""
