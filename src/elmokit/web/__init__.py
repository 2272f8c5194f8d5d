"""The HTTP API of `elmokit serve`, and the page of `elmokit explore`."""
