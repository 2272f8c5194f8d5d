"""The files of a model directory: their names, what they must hold, what is said of damage."""

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
    """What ``config.json`` holds."""

    model_type: str = MODEL_TYPE
    """Tells our directories from others."""
    elmokit_version: str = ""
    """The version that wrote the directory."""
    bilm: BiLMConfig
    """The network."""
    softmax: SoftmaxConfig | None = None
    """The output layer; none for a model that only encodes."""
    num_words: int | None = None
    """V, classes of the softmax."""
    has_vocab: bool | None = None
    """Whether ``vocab.txt`` belongs to the model; none: written before this was noted."""
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    """What made words of the training text."""
    warm_text: tuple[str, ...] = ()
    """Neutral sentences, words joined by one space, that warm up the LSTM state."""
    training: dict[str, Any] = field(default_factory=dict)
    """Metadata of the training, free in form."""


def read_config(directory: Path) -> ModelDirConfig:
    """Read ``config.json``.

    Raises:
        FormatError: if it is missing, damaged, or of another program's model.
        ConfigError: if it holds an unknown key or a wrong value.
    """
    path = directory / CONFIG_NAME
    if not path.exists():
        hint = ""
        if list(directory.glob("*options.json")):
            hint = (
                f"\nIt looks like weights in the original's format: `elmokit convert {directory} "
                "DST` makes a model directory of them, elmokit.read_bilm_tf(options, weights) "
                "reads them."
            )
        raise FormatError(f"{directory} is no model directory: it has no {CONFIG_NAME}.{hint}")
    data = read_json(path, advice="Copy the whole model directory again.")
    if data.get("model_type") != MODEL_TYPE:
        raise FormatError(
            f"{path}: `model_type` is {data.get('model_type')!r}, and only {MODEL_TYPE!r} can be "
            "loaded: this is another program's model."
        )
    if "bilm" not in data:
        raise FormatError(f"{path}: the key `bilm`, which describes the network, is missing.")
    return from_dict(ModelDirConfig, data, source=str(path))


def load_tensors(model: nn.Module, path: Path) -> None:
    """Give a model the file's tensors, after checking all names and shapes.

    They are mapped, not read: pages come from the disk when they are used, and writing to a tensor
    does not change the file.
    """
    parameters = model.state_dict()
    if not path.exists():
        raise FormatError(f"{path} is missing. Copy the whole model directory again.")
    path.open("rb").close()  # a system error names the path here, in safetensors it does not
    try:
        with safe_open(path, framework="pt") as file:
            _check_tensors(file, parameters, path)
            tensors = {name: file.get_tensor(name).float() for name in parameters}
            model.load_state_dict(tensors, assign=True)
    except SafetensorError as error:
        raise FormatError(
            f"{path}: not a whole safetensors file ({error}). Expected {len(parameters)} tensors, "
            f"the first `{next(iter(parameters))}` of shape "
            f"{tuple(next(iter(parameters.values())).shape)}; copy or convert it again."
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
    """Refuse a target that exists, unless it is empty or holds a model and nothing else."""
    if not target.exists():
        return
    if not target.is_dir():
        raise FileExistsError(
            f"{target} is a file; a model is saved as a directory. Give another name."
        )
    entries = sorted(entry.name for entry in target.iterdir())
    foreign = [name for name in entries if name not in FILE_NAMES]
    if entries and (foreign or not _is_model_dir(target)):
        raise FileExistsError(
            f"{target} exists and is not just a model directory (it holds "
            f"{(foreign or entries)[0]!r}): not overwritten. Give another name, or move its files "
            "away."
        )


def _is_model_dir(directory: Path) -> bool:
    try:
        config = read_json(directory / CONFIG_NAME, advice="")
    except (OSError, FormatError):
        return False
    return config.get("model_type") == MODEL_TYPE


def no_directory(directory: Path) -> str:
    """Return what to tell of a model directory that is not there."""
    if directory.exists():
        return f"{directory} is a file; give the model directory that holds {CONFIG_NAME}."
    message = f"There is no model directory {directory.absolute()}."
    previous = previous_of(directory)
    if previous.exists():
        message += (
            " A save was interrupted: the model as it was before is whole in "
            f"{previous}; rename it."
        )
    return message
