"""One file for each command: it parses, makes one call, prints."""
