"""Files: found, read, hashed, written whole or not at all. Nothing here knows ELMo."""
