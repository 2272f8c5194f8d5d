"""Running a frozen biLM: batches, distinct words, compiled kernels or PyTorch, start states."""
