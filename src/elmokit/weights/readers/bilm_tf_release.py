"""Released models of the original: options and HDF5 weights (`elmokit.weights.bilm_tf`)."""

from pathlib import Path

from elmokit.errors import FormatError
from elmokit.files.hdf5 import open_hdf5
from elmokit.weights.bilm_tf import read_bilm_tf
from elmokit.weights.bilm_tf_layout import SOFTMAX_NAMES
from elmokit.weights.readers.contents import Contents
from elmokit.weights.readers.imported import ImportedModel


def recognizes(contents: Contents) -> bool:
    """Tell whether there is an HDF5 file."""
    return bool(contents.of("HDF5"))


def read(contents: Contents) -> ImportedModel:
    """Read the model, with the softmax of a separate file if there is one."""
    options = contents.only("options", "options (JSON with `lstm`)", "options")
    weights, softmax = _weights(contents)
    model = read_bilm_tf(options, weights, vocab=contents.vocabulary(), softmax=softmax)
    return ImportedModel(model=model, origin=contents.listed([options, weights]))


def _weights(contents: Contents) -> tuple[Path, Path | None]:
    """Return the files of the biLM and of a separate softmax."""
    choices, found = contents.choices, contents.of("HDF5")
    softmax = None if choices.softmax is None else contents.given(choices.softmax, "softmax")
    if choices.weights is not None:
        return contents.given(choices.weights, "weights"), softmax
    outputs = [path for path in found if is_softmax(path)]
    weights = [path for path in found if path not in outputs]
    if softmax is None and not choices.encoder_only and len(outputs) == 1 and len(weights) == 1:
        softmax = outputs[0]
    if len(weights) != 1:
        contents.refuse_pointers()
        raise FormatError(
            f"{contents.folder} has {len(weights) or 'no'} HDF5 files with a biLM"
            f"{': ' + contents.listed(weights) if weights else ''}. One is expected: say which "
            "with --weights."
        )
    return weights[0], softmax


def is_softmax(path: Path) -> bool:
    """Tell whether a file holds a softmax and no biLM; a damaged one is left to its reader."""
    try:
        with open_hdf5(path) as file:
            holds_bilm = any(name in file for name in ("char_embed", "embedding", "RNN_0"))
            return not holds_bilm and SOFTMAX_NAMES[0] in file
    except FormatError:
        return False
