"""The kinds of foreign models that are read, and which of them a source is.

A reader is a module with ``recognizes(contents)`` and ``read(contents)`` and a line in `FORMATS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from elmokit.errors import FormatError, InputError
from elmokit.weights.readers import allennlp, bilm_tf_release, many_langs, tf_checkpoint, tf_hub
from elmokit.weights.readers.contents import Choices, Contents, kind_of, open_contents
from elmokit.weights.readers.imported import ImportedModel
from elmokit.weights.readers.tensor_bundle import INDEX_SUFFIX

WEIGHT_KINDS = ("HDF5", "TensorFlow index", "PyTorch")
ARCHIVED_FILES = "fta"
"""AllenNLP's folder of files that its configuration names."""


@dataclass(frozen=True, kw_only=True)
class ForeignFormat:
    """Models of other software."""

    name: str
    files: str
    """What such a model consists of."""
    recognizes: Callable[[Contents], bool]
    read: Callable[[Contents], ImportedModel]
    choices: tuple[str, ...] = ()
    """Which of vocab, softmax and name can be chosen for it."""


FORMATS = (
    ForeignFormat(
        name="bilm-tf release", files="options.json and HDF5 weights", choices=("vocab", "softmax"),
        recognizes=bilm_tf_release.recognizes, read=bilm_tf_release.read,
    ),
    ForeignFormat(
        name="TF-Hub module", files="saved_model.pb and variables/",
        recognizes=tf_hub.recognizes, read=tf_hub.read,
    ),
    ForeignFormat(
        name="bilm-tf checkpoint", choices=("vocab", "softmax"),
        files="options.json, vocabulary, *.index and *.data-00000-of-00001",
        recognizes=tf_checkpoint.recognizes, read=tf_checkpoint.read,
    ),
    ForeignFormat(
        name="ELMoForManyLangs folder",
        files="encoder.pkl, token_embedder.pkl, char.dic, word.dic, config.json",
        recognizes=many_langs.recognizes, read=many_langs.read,
    ),
    ForeignFormat(
        name="AllenNLP archive", files="config.json and weights.th", choices=("name",),
        recognizes=allennlp.recognizes, read=allennlp.read,
    ),
)  # fmt: skip
"""In this order the first that recognizes a source reads it."""


def read_foreign(source: Path, choices: Choices, *, scratch: Path) -> tuple[str, ImportedModel]:
    """Find out what a source is by its contents, and read it.

    Args:
        source: A folder, one of its files, or a zip or tar archive of one.
        choices: What the user says beyond that.
        scratch: Folder on a disk with room for an unpacked archive.

    Returns:
        The name of the format, and the model.

    Raises:
        FormatError: if the source is of no kind or of several, or damaged.
        InputError: if a choice has no use.
    """
    with open_contents(source, choices, scratch=scratch) as contents:
        contents = _of_one_kind(contents)
        chosen = next((one for one in FORMATS if one.recognizes(contents)), None)
        if chosen is None:
            contents.refuse_pointers()
            kinds = "; ".join(f"{one.name} ({one.files})" for one in FORMATS)
            raise FormatError(
                f"{contents.folder} is not a known model. It holds {contents.summary()}. What "
                f"is read: {kinds}; a zip or tar archive of one of these; a model directory."
            )
        for option in ("vocab", "softmax", "name"):
            if getattr(choices, option) is not None and option not in chosen.choices:
                raise InputError(
                    f"{source} is of the kind {chosen.name!r}, which has no use for --{option}."
                )
        imported = chosen.read(contents)
        if unread := contents.of("unreadable JSON", "Git LFS pointer"):
            note = f"not read, since Git LFS pointers or no JSON: {contents.listed(unread)}"
            imported = replace(imported, notes=(*imported.notes, note))
        if choices.encoder_only:
            imported = replace(imported, model=imported.model.encoder())
        return chosen.name, imported


def _of_one_kind(contents: Contents) -> Contents:
    """Leave out weights of other kinds than the chosen ones; refuse several without a choice."""
    kinds = {kind for kind in contents.kinds.values() if kind in WEIGHT_KINDS}
    if "PyTorch" in kinds:  # AllenNLP archives the files that the ELMo was first read from
        kept = {
            path: kind
            for path, kind in contents.kinds.items()
            if kind not in WEIGHT_KINDS or contents.folder / ARCHIVED_FILES not in path.parents
        }
        contents = replace(contents, kinds=kept)
        kinds = {kind for kind in kept.values() if kind in WEIGHT_KINDS}
    if len(kinds) < 2:
        return contents
    if (weights := contents.choices.weights) is None:
        raise FormatError(
            f"{contents.folder} holds models of several kinds: {contents.summary()}. Choose one "
            "with --weights."
        )
    index = weights.with_name(weights.name + INDEX_SUFFIX)
    chosen = contents.kinds.get(contents.folder / weights, "TensorFlow index")
    if chosen == "TensorFlow index" and not (contents.folder / index).exists():
        chosen = kind_of(contents.given(weights, "weights"))
    kept = {
        path: kind
        for path, kind in contents.kinds.items()
        if kind == chosen or kind not in WEIGHT_KINDS
    }
    return replace(contents, kinds=kept)
