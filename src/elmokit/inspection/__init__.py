"""What a model makes of a word: its token, its characters, its numbers."""
