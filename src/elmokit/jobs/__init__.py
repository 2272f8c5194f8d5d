"""Long pieces of work that may be stopped at any moment and resumed later."""
