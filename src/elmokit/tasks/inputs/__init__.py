"""What a task model reads at each word: static vectors, characters, layers of a biLM."""
