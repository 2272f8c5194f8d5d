"""The explorer: one page that looks inside a model, served or written as static files."""
