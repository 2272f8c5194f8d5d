"""Variables of the original's TensorFlow graphs, under the names that its HDF5 files have."""

import re
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError
from elmokit.weights.bilm_tf_layout import SOFTMAX_NAMES
from elmokit.weights.readers.tensor_bundle import BundleEntry, TensorBundle

_PARTS = {
    "kernel": "W_0", "weights": "W_0", "w_0": "W_0", "bias": "B", "biases": "B", "b": "B",
    "projection/kernel": "W_P_0", "projection/weights": "W_P_0", "w_p_0": "W_P_0",
}  # fmt: skip
"""TensorFlow has renamed the weights of its cells twice."""
_CELL = re.compile(
    rf"RNN_(?P<direction>\d+)/(?P<path>.*)lstm_?cell/(?P<part>{'|'.join(_PARTS)})", re.IGNORECASE
)
_LAYER = re.compile(r"cell_?(\d+)/", re.IGNORECASE)
_FIRST = ("char_embed", "embedding")


class Variables:
    """An `ArraySource` of a checkpoint's variables.

    The scope (``lm/``) is found by the variable ``char_embed`` or ``embedding``; the slots of
    optimizers are left out, and without ``with_softmax`` the softmax.

    Raises:
        FormatError: if there is no such variable, or more than one.
    """

    def __init__(self, bundle: TensorBundle, *, with_softmax: bool = True) -> None:
        self.path = bundle.path
        self._bundle = bundle
        scope = _scope(bundle)
        self._entries: dict[str, BundleEntry] = {}
        for name, entry in bundle.entries.items():
            if name.startswith(scope) and not _is_slot(name, bundle):
                usual = _usual_name(name.removeprefix(scope))
                if with_softmax or usual not in SOFTMAX_NAMES:
                    self._entries[usual] = entry

    @property
    def num_bytes(self) -> int:
        """Size of the data files."""
        return self._bundle.num_bytes

    def __contains__(self, name: str) -> bool:
        """Return whether there is a variable, or a scope, of this name."""
        return name in self._entries or any(one.startswith(f"{name}/") for one in self._entries)

    def dataset(self, name: str) -> BundleEntry | None:
        """Return where a variable is."""
        return self._entries.get(name)

    def read(self, dataset: BundleEntry) -> np.ndarray:
        """Read a variable."""
        return self._bundle.read(dataset)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return name and shape of every variable in the scope."""
        return {name: entry.shape for name, entry in self._entries.items()}

    @property
    def num_words(self) -> int | None:
        """V of the softmax, if there is one."""
        entry = self._entries.get(SOFTMAX_NAMES[0])
        return entry.shape[0] if entry is not None and entry.shape else None


def _scope(bundle: TensorBundle) -> str:
    scopes = _scopes(bundle)
    if len(scopes) == 1:
        return scopes[0]
    names = ", ".join(sorted(bundle.entries)[:5])
    raise FormatError(
        f"{bundle.path}: expected one variable `lm/char_embed` (or `lm/embedding`) of a biLM, "
        f"found {len(scopes) or 'none'} in {len(bundle.entries)} variables such as {names}."
    )


def _scopes(bundle: TensorBundle) -> list[str]:
    names = [name for name in bundle.entries if name.rpartition("/")[2] in _FIRST]
    characters = [name for name in names if name.endswith(_FIRST[0])]
    return [name[: name.rfind("/") + 1] for name in characters or names]


def _is_slot(name: str, bundle: TensorBundle) -> bool:
    """Tell whether a variable is an optimizer's, such as ``lm/softmax/W/Adagrad``."""
    return name.rpartition("/")[0] in bundle.entries


def _usual_name(name: str) -> str:
    cell = _CELL.fullmatch(name)
    if cell is None:
        return name
    found = _LAYER.search(cell["path"])
    layer = "" if found is None else f"MultiRNNCell/Cell{found[1]}/"
    return f"RNN_{cell['direction']}/RNN/{layer}LSTMCell/{_PARTS[cell['part'].lower()]}"


def steps_of(index: Path) -> int:
    """Return the number that ends the name of a checkpoint, 0 without one."""
    found = re.search(r"-(\d{1,18})\.index$", index.name)
    return int(found[1]) if found else 0
