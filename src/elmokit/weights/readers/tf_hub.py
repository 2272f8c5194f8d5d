"""ELMo modules of TensorFlow Hub: a SavedModel whose variables are those of the original.

They have no options and no vocabulary. Their mixture of layers is left out: what the graph makes of
its two variables is not among the variables.
"""

from elmokit.errors import FormatError
from elmokit.weights.bilm_tf import build_bilm
from elmokit.weights.bilm_tf_options import read_options
from elmokit.weights.readers.contents import Contents
from elmokit.weights.readers.imported import ImportedModel
from elmokit.weights.readers.sizes import RELEASED_ASSUMED, released_options
from elmokit.weights.readers.tensor_bundle import TensorBundle
from elmokit.weights.readers.variables import Variables

_MIXTURE = "aggregation/weights"
_MIXTURE_LEFT_OUT = "the module's mixture of layers (aggregation/*) is left out"


def recognizes(contents: Contents) -> bool:
    """Tell whether the only checkpoint has the variables of a module."""
    found = contents.of("TensorFlow index")
    if len(found) != 1:
        return False
    try:
        return _MIXTURE in TensorBundle(found[0]).entries
    except FormatError:  # which the reader of checkpoints reports
        return False


def read(contents: Contents) -> ImportedModel:
    """Read the module's biLM."""
    index = contents.only("TensorFlow index", "variables", "weights")
    variables, notes = Variables(TensorBundle(index)), [_MIXTURE_LEFT_OUT]
    if contents.choices.options is None and not contents.of("options"):
        contents.refuse_unreadable()
        source, options = index, released_options(variables.shapes(), source=index)
        notes.append(RELEASED_ASSUMED)
    else:
        source = contents.only("options", "options (JSON with `lstm`)", "options")
        options = read_options(source)
    model = build_bilm(options, variables, source=source)
    return ImportedModel(model=model, origin=contents.relative(index), notes=tuple(notes))
