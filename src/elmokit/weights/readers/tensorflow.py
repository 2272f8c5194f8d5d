"""Models of the original software: released files, runs of its trainer, TensorFlow Hub modules.

The variables of its TensorFlow graphs get the names that its HDF5 files have. Runs may have the
layout of ratsgo's Korean models, which have words of at most 30 characters and a vocabulary of
their own; their softmax is read, too, so that perplexity and fine-tuning go on. A Hub module has
no options and no vocabulary; what its graph makes of its mixture of layers is not in its variables.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError
from elmokit.files.hdf5 import open_hdf5
from elmokit.weights.bilm_tf import build_bilm, read_original
from elmokit.weights.bilm_tf_layout import SOFTMAX_NAMES, ArraySource
from elmokit.weights.bilm_tf_options import RELEASED_ASSUMED, read_options, released_options
from elmokit.weights.readers.contents import Contents, ImportedModel
from elmokit.weights.readers.tensor_bundle import INDEX_SUFFIX, BundleEntry, TensorBundle

_MIXTURE = "aggregation/weights"
_MIXTURE_LEFT_OUT = "the module's mixture of layers (aggregation/*) is left out"
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


# --- released files


def read_release(contents: Contents) -> ImportedModel:
    """Read the model, with the softmax of a separate file if there is one."""
    options = contents.need("options", "options")
    outputs = [path for path in contents.of("HDF5") if is_softmax(path)]
    others = [path for path in contents.of("HDF5") if path not in outputs]
    weights = contents.find("weights", others) or contents.need("weights", "HDF5")
    softmax = contents.given("softmax")
    is_alone = contents.choices.encoder_only or contents.choices.weights is not None
    if softmax is None and len(outputs) == 1 and not is_alone:
        softmax = outputs[0]
    model = read_original(options, weights, vocab=contents.vocabulary(), softmax=softmax)
    return ImportedModel(model=model, origin=contents.listed([options, weights]))


def is_softmax(path: Path) -> bool:
    """Tell whether a file holds a softmax and no biLM; a damaged one is left to its reader."""
    with suppress(FormatError), open_hdf5(path) as file:
        names = file.shapes()
        holds_bilm = any(name in _FIRST or name.startswith("RNN_0/") for name in names)
        return SOFTMAX_NAMES[0] in names and not holds_bilm
    return False


# --- checkpoints


def read_checkpoint(contents: Contents) -> ImportedModel:
    """Read the last checkpoint, or the one that was chosen."""
    index = _index(contents)
    variables = Variables(index, with_softmax=not contents.choices.encoder_only)
    options = contents.need("options", "options")
    vocab = contents.vocabulary()
    if vocab is None and (softmax := variables.shapes().get(SOFTMAX_NAMES[0])):
        raise FormatError(
            f"{index} holds a softmax over {softmax[0]:,} words, but {contents.folder} has no list "
            "of them. Give it with --vocab, or leave the softmax out with --encoder-only."
        )
    model = build_bilm(read_options(options), variables, source=options, vocab=vocab)
    return ImportedModel(model=model, origin=contents.listed([options, index]))


def _index(contents: Contents) -> Path:
    """Return the index that was chosen, or that of the most steps."""
    if (name := contents.choices.weights) is not None:
        index = name.with_name(name.name + INDEX_SUFFIX)  # of a prefix, which is no file
        indices = [path for path in (contents.folder / index, index) if path.exists()]
        return indices[0] if indices else contents.need("weights", "TensorFlow index")
    indices = contents.of("TensorFlow index")
    steps = {path: re.findall(r"-(\d{1,18})\.index$", path.name) for path in indices}
    return max(indices, key=lambda path: (int((steps[path] or [0])[0]), path.name))


# --- Hub modules


def recognizes_hub(contents: Contents) -> bool:
    """Tell whether the only checkpoint has the variables of a module."""
    indices = contents.of("TensorFlow index")
    with suppress(FormatError):  # which the reader of checkpoints reports
        return len(indices) == 1 and _MIXTURE in TensorBundle(indices[0]).entries
    return False


def read_hub(contents: Contents) -> ImportedModel:
    index = contents.need("weights", "TensorFlow index")
    variables = Variables(index)
    options, source, notes = options_or_released(contents, contents.of("options"), variables)
    model = build_bilm(options, variables, source=source)
    notes = (_MIXTURE_LEFT_OUT, *notes)
    return ImportedModel(model=model, origin=contents.listed([index]), notes=notes)


def options_or_released(
    contents: Contents, files: list[Path], arrays: ArraySource
) -> tuple[dict[str, Any], Path, tuple[str, ...]]:
    """Return the options that are given or there, else those of released models, with a note."""
    source = contents.find("options", files)
    if source is not None:
        return read_options(source), source, ()
    return released_options(arrays.shapes(), source=arrays.path), arrays.path, (RELEASED_ASSUMED,)


# --- variables


class Variables(TensorBundle):
    """An `ArraySource` of a checkpoint's variables.

    The scope (``lm/``) is found by the variable ``char_embed`` or ``embedding``; the slots of
    optimizers are left out, and without ``with_softmax`` the softmax.
    """

    def __init__(self, index: Path, *, with_softmax: bool = True) -> None:
        super().__init__(index)
        first = [name for name in self.entries if name.rpartition("/")[2] in _FIRST]
        first = [name for name in first if name.endswith(_FIRST[0])] or first
        if len(first) != 1:
            raise FormatError(
                f"{index}: expected one variable `lm/char_embed` (or `lm/embedding`) of a biLM, "
                f"got {len(first) or 'none'} in {', '.join(sorted(self.entries)[:5])} …"
            )
        scope = first[0][: first[0].rfind("/") + 1]
        variables = {
            _usual_name(name.removeprefix(scope)): entry
            for name, entry in self.entries.items()
            # slots are below their variable, such as lm/softmax/W/Adagrad
            if name.startswith(scope) and name.rpartition("/")[0] not in self.entries
        }
        left_out = () if with_softmax else SOFTMAX_NAMES
        self._variables = {name: variables[name] for name in variables if name not in left_out}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: entry.shape for name, entry in self._variables.items()}

    def dataset(self, name: str) -> BundleEntry | None:
        return self._variables.get(name)


def _usual_name(name: str) -> str:
    cell = _CELL.fullmatch(name)
    if cell is None:
        return name
    number = _LAYER.search(cell["path"])
    layer = "" if number is None else f"MultiRNNCell/Cell{number[1]}/"
    return f"RNN_{cell['direction']}/RNN/{layer}LSTMCell/{_PARTS[cell['part'].lower()]}"
