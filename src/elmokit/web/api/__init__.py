"""Models over HTTP, in the dialects of OpenAI and of Text Embeddings Inference (extra `serve`)."""
