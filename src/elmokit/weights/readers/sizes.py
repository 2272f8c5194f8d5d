"""Options of a network whose files do not have them, from the shapes of its arrays."""

from collections.abc import Mapping
from typing import Any

from elmokit.errors import FormatError
from elmokit.text.char_vocab import DEFAULT_MAX_CHARACTERS

RELEASED_CLIP = 3.0
RELEASED_ASSUMED = (
    f"the activation (ReLU), both clips ({RELEASED_CLIP:g}) and the longest word "
    f"({DEFAULT_MAX_CHARACTERS}) are those of all released "
    "models: the files do not state them. If they were others, give the options file with --options"
)
"""What shapes do not tell."""


def released_options(shapes: Mapping[str, tuple[int, ...]], *, source: object) -> dict[str, Any]:
    """Return the options of the original, sizes by shape and the rest as in all released models.

    Raises:
        FormatError: if an array is missing from which a size would follow.
    """

    def dim(name: str, axis: int, rank: int) -> int:
        shape = shapes.get(name)
        if shape is None or len(shape) != rank:
            raise FormatError(
                f"{source}: `{name}` of {rank} dimensions was expected, found {shape or 'none'}: "
                "its sizes are those of the network. Give the options file with --options."
            )
        return shape[axis]

    cells = [name for name in shapes if name.startswith("RNN_0/") and name.endswith("/W_0")]
    first = min(cells, default="RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0")
    cell_dim = dim(first, 1, 2) // 4
    filters = []
    while f"CNN/W_cnn_{len(filters)}" in shapes:
        name = f"CNN/W_cnn_{len(filters)}"
        filters.append([dim(name, 1, 4), dim(name, 3, 4)])
    num_highway = 0
    while f"CNN_high_{num_highway}/W_carry" in shapes:
        num_highway += 1
    return {
        "lstm": {
            "use_skip_connections": True,
            "projection_dim": dim(first, 0, 2) // 2,
            "cell_clip": RELEASED_CLIP,
            "proj_clip": RELEASED_CLIP,
            "dim": cell_dim,
            "n_layers": len(cells),
        },
        "char_cnn": {
            "activation": "relu",
            "filters": filters,
            "n_highway": num_highway,
            "embedding": {"dim": dim("char_embed", 1, 2)},
            "n_characters": 262,
            "max_characters_per_token": DEFAULT_MAX_CHARACTERS,
        },
    }
