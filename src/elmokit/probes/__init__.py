"""Looking inside: what contextual vectors know."""
