"""Training runs of the original: a TensorFlow checkpoint, options, vocabulary.

Also the layout of ratsgo's Korean models, which have words of at most 30 characters and a
vocabulary of their own. The softmax is read too, so that perplexity and fine-tuning go on.
"""

import re
from pathlib import Path

from elmokit.errors import FormatError
from elmokit.files.bounded import read_bounded
from elmokit.weights.bilm_tf import build_bilm
from elmokit.weights.bilm_tf_options import read_options
from elmokit.weights.readers.contents import Contents
from elmokit.weights.readers.imported import ImportedModel
from elmokit.weights.readers.tensor_bundle import INDEX_SUFFIX, TensorBundle
from elmokit.weights.readers.variables import Variables, steps_of

STATE_NAME = "checkpoint"
"""TensorFlow's own name of the file that says which checkpoint is the last."""
_MAX_STATE_BYTES = 1 << 20
_LATEST = re.compile(r'^model_checkpoint_path: "([^"\n]{1,4096})"', re.MULTILINE)


def recognizes(contents: Contents) -> bool:
    """Tell whether there is the index of a checkpoint."""
    return bool(contents.of("TensorFlow index"))


def read(contents: Contents) -> ImportedModel:
    """Read the last checkpoint, or the one that was chosen."""
    index = _index(contents)
    encoder_only = contents.choices.encoder_only
    variables = Variables(TensorBundle(index), with_softmax=not encoder_only)
    options = contents.only("options", "options (JSON with `lstm`)", "options")
    vocab = contents.vocabulary()
    if vocab is None and variables.num_words is not None:
        raise FormatError(
            f"{index} holds a softmax over {variables.num_words:,} words, but {contents.folder} "
            "has no vocabulary, a text file with so many lines. Give it with --vocab, or leave the "
            "softmax out with --encoder-only."
        )
    model = build_bilm(read_options(options), variables, source=options, vocab=vocab)
    return ImportedModel(model=model, origin=contents.listed([options, index]))


def _index(contents: Contents) -> Path:
    """Return the index that was chosen, that the run names as its last, or of the most steps."""
    if (chosen := contents.choices.weights) is not None:
        with_suffix = chosen.with_name(chosen.name + INDEX_SUFFIX)
        is_prefix = any((folder / with_suffix).exists() for folder in (contents.folder, Path()))
        return contents.given(with_suffix if is_prefix else chosen, "weights")
    found = contents.of("TensorFlow index")
    for state in (path for path in contents.kinds if path.name == STATE_NAME):
        text = read_bounded(state, _MAX_STATE_BYTES).decode("utf-8-sig", "replace")
        if (latest := _LATEST.search(text)) is not None:
            name = re.split(r"[/\\]", latest[1])[-1]  # the rest is of the machine that wrote it
            named = state.with_name(name + INDEX_SUFFIX)
            if named in found:
                return named
    return max(found, key=lambda path: (steps_of(path), path.name))
