"""Training windows as words."""


def decoded(window):
    """Return the forward inputs of a window as rows of words."""
    boundaries = {257: "<S>", 258: "</S>"}
    words = ["".join(boundaries.get(c) or chr(c - 1) for c in row if c < 259) for row in
             window.char_ids.tolist()]  # fmt: skip
    return [[words[i] for i in row] for row in window.forward_inputs]
