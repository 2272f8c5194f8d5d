"""The files of a model directory: names, contents, and errors for damage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.config import from_dict
from elmokit.errors import FormatError
from elmokit.files.atomic import previous_of
from elmokit.files.json_files import read_json
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.weights.locate import CONFIG_NAME

MODEL_TYPE = "elmokit"
WEIGHTS_NAME = "model.safetensors"
VOCAB_NAME = "vocab.txt"
CARD_NAME = "README.md"
FILE_NAMES = (CONFIG_NAME, WEIGHTS_NAME, VOCAB_NAME, CARD_NAME)
"""Everything that a model directory holds."""


@dataclass(frozen=True, kw_only=True)
class ModelDirConfig:
    """The contents of ``config.json``."""

    model_type: str = MODEL_TYPE
    """Identifies our directories."""
    elmokit_version: str = ""
    """The version that wrote the directory."""
    bilm: BiLMConfig
    """The network."""
    softmax: SoftmaxConfig | None = None
    """The output layer; None for a model that only encodes."""
    num_words: int | None = None
    """V, classes of the softmax."""
    has_vocab: bool | None = None
    """Whether there is a ``vocab.txt``; None in older directories."""
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    """The tokenizer of the training text."""
    warm_text: tuple[str, ...] = ()
    """Neutral sentences, words joined by spaces, to warm up the LSTM state."""
    training: dict[str, Any] = field(default_factory=dict)
    """Free-form training metadata."""


def read_config(directory: Path) -> ModelDirConfig:
    """Read ``config.json``.

    Raises:
        FormatError: if it is missing, damaged, or from another program.
        ConfigError: if it holds an unknown key or a wrong value.
    """
    path = directory / CONFIG_NAME
    if not path.exists():
        hint = ""
        if list(directory.glob("*options.json")):
            hint = (
                f"\nIt looks like weights in the original format: `elmokit convert {directory} "
                "DST` makes a model directory of them, elmokit.read_bilm_tf(options, weights) "
                "reads them."
            )
        raise FormatError(f"{directory} is not a model directory: it has no {CONFIG_NAME}.{hint}")
    data = read_json(path, advice="Copy the whole model directory again.")
    if data.get("model_type") != MODEL_TYPE:
        raise FormatError(
            f"{path}: `model_type` is {data.get('model_type')!r}, but only {MODEL_TYPE!r} can be "
            "loaded: this is another program's model."
        )
    if "bilm" not in data:
        raise FormatError(f"{path}: the key `bilm`, which describes the network, is missing.")
    return from_dict(ModelDirConfig, data, source=str(path))


def load_tensors(model: nn.Module, path: Path) -> None:
    """Load the file's tensors into a model, after checking all names and shapes.

    They are memory-mapped: pages are read on first use, and writing to a tensor does not change
    the file.
    """
    parameters = model.state_dict()
    if not path.exists():
        raise FormatError(f"{path} is missing. Copy the whole model directory again.")
    path.open("rb").close()  # system errors name the path here, but not in safetensors
    try:
        with safe_open(path, framework="pt") as file:
            _check_tensors(file, parameters, path)
            tensors = {name: file.get_tensor(name).float() for name in parameters}
            model.load_state_dict(tensors, assign=True)
    except SafetensorError as error:
        name, first = next(iter(parameters.items()))
        raise FormatError(
            f"{path}: not a whole safetensors file ({error}). Expected {len(parameters)} tensors, "
            f"the first `{name}` of shape {tuple(first.shape)}; copy or convert it again."
        ) from error


def _check_tensors(file: Any, parameters: Mapping[str, Tensor], path: Path) -> None:
    found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 (no mapping)
    for name, parameter in parameters.items():
        expected = tuple(parameter.shape)
        if name not in found:
            raise FormatError(f"{path}: tensor `{name}` is missing; expected shape {expected}.")
        if found[name] != expected:
            raise FormatError(
                f"{path}: tensor `{name}` has shape {found[name]}, expected {expected}."
            )
    surplus = sorted(set(found) - set(parameters))
    if surplus:
        raise FormatError(
            f"{path}: tensor `{surplus[0]}` of shape {found[surplus[0]]} has no place in the model "
            f"that {CONFIG_NAME} describes; the two files belong to different models."
        )


def check_replaceable(target: Path) -> None:
    """Refuse an existing target, unless it is an empty directory or holds only a model."""
    if not target.exists():
        return
    if not target.is_dir():
        raise FileExistsError(f"{target} is a file, not a directory. Give another name.")
    entries = sorted(entry.name for entry in target.iterdir())
    foreign = [name for name in entries if name not in FILE_NAMES]
    if entries and (foreign or not _is_model_dir(target)):
        raise FileExistsError(
            f"{target} exists and is not just a model directory (it holds "
            f"{(foreign or entries)[0]!r}): not overwritten. Give another name, or move its files."
        )


def _is_model_dir(directory: Path) -> bool:
    try:
        config = read_json(directory / CONFIG_NAME, advice="")
    except (OSError, FormatError):
        return False
    return config.get("model_type") == MODEL_TYPE


def no_directory(directory: Path) -> str:
    """Return the error message for a missing model directory."""
    if directory.exists():
        return f"{directory} is a file; give the model directory that holds {CONFIG_NAME}."
    message = f"There is no model directory {directory.absolute()}."
    if (previous := previous_of(directory)).exists():
        message += f" A save was interrupted: the previous model is whole in {previous}; rename it."
    return message
