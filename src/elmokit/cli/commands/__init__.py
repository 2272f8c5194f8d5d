"""A file for a command or a few: each parses, makes one call, returns what is printed."""
