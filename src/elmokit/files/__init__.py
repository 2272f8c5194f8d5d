"""Files: found, read, hashed, decompressed, written whole or not at all. Nothing here knows ELMo."""
