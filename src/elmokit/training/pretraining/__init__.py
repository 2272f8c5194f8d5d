"""Training a biLM: pre-training, fine-tuning, and the run directory that both write."""
