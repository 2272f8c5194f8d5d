"""The files of a model directory: names, contents, trained mixtures, errors for damage."""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import numpy as np
from safetensors.numpy import save_file

from elmokit.bilm.config import MAX_WORDS, NORM_EPSILON, BiLMConfig, LayerNorm, SoftmaxConfig
from elmokit.config import from_dict, to_dict
from elmokit.errors import Bounds, CheckedFields, FormatError
from elmokit.files.atomic import StrPath, atomic_file
from elmokit.files.json_files import read_json
from elmokit.shapes import Float
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.arrays import Storage, StoredArrays
from elmokit.weights.locate import CONFIG_NAME, packaged_models

MODEL_TYPE = "elmokit"
COPY_AGAIN = "Copy the whole model directory again."
WEIGHTS_NAME = "model.safetensors"
VOCAB_NAME = "vocab.txt"
CARD_NAME = "README.md"
MIXES_NAME = "mixes.safetensors"
"""Mixtures of layers that were trained with the model (`elmokit.weights.model_files`), if any."""
LEXICON_NAME = "lexicon.json"
"""The lists of characters and words of `elmokit.text.lexicon`, for models that have them."""
SPELLING_NAME = "spelling.safetensors"
"""How words outside the vocabulary are spelled (`elmokit.text.spelling`), if that was learned."""
FILE_NAMES = (
    CONFIG_NAME, WEIGHTS_NAME, VOCAB_NAME, CARD_NAME, MIXES_NAME, LEXICON_NAME, SPELLING_NAME,
)  # fmt: skip
"""Everything that a model directory holds."""
KEPT = "kept"
"""Folder of a run with the models of earlier times in its training."""
FILE_MANAGER_FILES = (".DS_Store", "desktop.ini", "Thumbs.db")
"""What file managers leave in any directory."""


@dataclass(frozen=True, kw_only=True)
class ModelDirConfig(CheckedFields):
    model_type: str = MODEL_TYPE
    """Identifies our directories."""
    elmokit_version: str = ""
    """The version that wrote the directory."""
    weights: Storage | None = None
    """Number format of the stored weights; None in older directories, which have no int8."""
    weights_sha256: str | None = None
    """Hash of ``model.safetensors``, compared on loading; None in older directories."""
    model_hash: str | None = None
    """`LoadedBiLM.model_hash`, so that it need not be computed; None in older directories."""
    hash_key: str | None = None
    """`hash_key` when ``model_hash`` was written: it holds as long as this has not changed."""
    bilm: BiLMConfig
    """The network."""
    softmax: SoftmaxConfig | None = None
    """The output layer; None for a model that only encodes."""
    num_words: Annotated[int, Bounds(1, MAX_WORDS)] | None = None
    """V, classes of the softmax."""
    has_vocab: bool | None = None
    """Whether there is a ``vocab.txt``; None in older directories."""
    vocab_sha256: str | None = None
    """`WordVocab.sha256`, compared on loading; None without vocabulary and in older directories."""
    spelling_sha256: str | None = None
    """`SpellingModel.sha256`, compared on loading; None without ``spelling.safetensors``."""
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    """The tokenizer of the training text."""
    warm_text: tuple[str, ...] = ()
    """Neutral sentences, words joined by spaces, to warm up the LSTM state."""
    training: dict[str, Any] = field(default_factory=dict)
    """Free-form training metadata."""


def read_config(directory: Path) -> ModelDirConfig:
    path = directory / CONFIG_NAME
    if not path.exists():
        raise FormatError(
            f"{directory} is not a model directory: it has no {CONFIG_NAME}. Give one that "
            "`elmokit pretrain` made, or `elmokit convert` of other ELMo files, or the name of a "
            f"model in the package: {', '.join(packaged_models())}."
        )
    data = read_json(path, advice=COPY_AGAIN)
    if data.get("model_type") != MODEL_TYPE:
        raise FormatError(
            f"{path}: another program's model: `model_type` is {data.get('model_type')!r}, not "
            f"{MODEL_TYPE!r}."
        )
    if isinstance(softmax := data.get("softmax"), dict):
        softmax.pop("full_share", None)  # of older versions: a setting of training alone
    return from_dict(ModelDirConfig, data, source=str(path))


def check_replaceable(target: Path) -> None:
    """Refuse an existing target, unless it is an empty directory or holds only a model."""
    if not target.exists():
        return
    entries = {entry.name for entry in target.iterdir()} - {*FILE_MANAGER_FILES}
    foreign = sorted(entries - {*FILE_NAMES})
    is_own = False
    if CONFIG_NAME in entries:
        with suppress(OSError, FormatError):
            is_own = read_json(target / CONFIG_NAME, advice="").get("model_type") == MODEL_TYPE
    if entries and (foreign or not is_own):
        raise FileExistsError(
            f"{target} exists and is not just a model directory (it holds "
            f"{(foreign or sorted(entries))[0]!r}): not overwritten. Give another name, or move "
            "its files."
        )


def short_count(number: int) -> str:
    """Return a round number of words as people write it: ``500k``, ``2M``."""
    for unit, size in (("M", 10**6), ("k", 10**3)):
        if number % size == 0:
            return f"{number // size}{unit}"
    return str(number)


def read_vocab(directory: Path, config: ModelDirConfig) -> WordVocab | None:
    path = directory / VOCAB_NAME
    if not path.exists():
        if config.has_vocab:
            raise FormatError(
                f"{path} is missing: {CONFIG_NAME} says that the model has one. {COPY_AGAIN}"
            )
        return None
    vocab = WordVocab.read(path, advice=f"The file is damaged. {COPY_AGAIN}")
    num_words = config.num_words if config.num_words is not None else config.bilm.num_words
    # older directories have no hash
    if config.vocab_sha256 not in (None, vocab.sha256) or num_words not in (None, len(vocab)):
        raise FormatError(
            f"{path}: damaged, or of another model: {len(vocab)} words, where {CONFIG_NAME} says "
            f"{num_words}, or others. {COPY_AGAIN}"
        )
    return vocab


def hashed_settings(config: BiLMConfig) -> bytes:
    """Return the settings that the hash of a model has in it."""
    settings = to_dict(config)
    del settings["dropout"]  # acts in training only
    if config.lexicon is None:
        del settings["lexicon"]  # which older versions do not have
    return json.dumps(settings, sort_keys=True).encode()


def hash_key(config: ModelDirConfig) -> str:
    """Return the hex SHA-256 of what a directory says of all that its model's hash depends on."""
    files = f"{config.weights_sha256} {config.vocab_sha256}".encode()
    return hashlib.sha256(hashed_settings(config.bilm) + files).hexdigest()


_ADVICE = "`elmokit convert` writes such a file with the model, if there are trained mixtures."
_NORM = "layer_norm"


def mix_shares(mix_weights: Float[np.ndarray, " L"]) -> Float[np.ndarray, " L"]:
    """Return the share of each layer: the softmax of its learned weights."""
    powers = np.exp(mix_weights - mix_weights.max())
    return powers / powers.sum()


@dataclass(frozen=True, kw_only=True)
class TrainedMixes:
    """Weights of M mixtures of L layers."""

    mix_weights: Float[np.ndarray, "M L"]
    """Before the softmax."""
    gammas: Float[np.ndarray, " M"]
    """The scale of each."""
    layer_norm: LayerNorm = "none"
    """Normalization before mixing."""

    @property
    def num_layers(self) -> int:
        """L, the token layer included."""
        return self.mix_weights.shape[1]

    def mix(self, index: int, layers: Float[np.ndarray, "L P E2"]) -> Float[np.ndarray, "P E2"]:
        """Return mixture number ``index`` of the layers at P positions: a `ScalarMix` in NumPy.

        The positions are all that a batch-wide norm counts.
        """
        if self.layer_norm != "none":
            axes = 2 if self.layer_norm == "token" else (1, 2)
            centered = layers - layers.mean(axis=axes, keepdims=True)
            variance = np.square(centered).mean(axis=axes, keepdims=True)
            layers = centered / np.sqrt(variance + np.float32(NORM_EPSILON))
        shares = self.gammas[index] * mix_shares(self.mix_weights[index])
        mixed = shares[0] * layers[0]
        for share, layer in zip(shares[1:], layers[1:], strict=True):
            mixed += share * layer
        return mixed


def write_mixes(mixes: TrainedMixes, path: StrPath) -> None:
    """Write the file."""
    arrays = {
        name: np.ascontiguousarray(getattr(mixes, name), dtype=np.float32)
        for name in ("mix_weights", "gammas")
    }
    with atomic_file(path) as temp_path:
        save_file(arrays, temp_path, metadata={"format": "pt", _NORM: mixes.layer_norm})


def read_mixes(path: StrPath) -> TrainedMixes:
    """Read a file of mixtures."""
    source = Path(path)
    arrays = StoredArrays(source, advice=_ADVICE)
    norm = arrays.metadata.get(_NORM)
    # copied: the arrays are views of the file
    weights, gammas = (np.array(arrays.get(name, 0)) for name in ("mix_weights", "gammas"))
    has_shapes = weights.ndim == 2 and gammas.shape == weights.shape[:1]
    if not has_shapes or norm not in get_args(LayerNorm):
        raise FormatError(
            f"{source}: expected `mix_weights` (M, L), `gammas` (M,), and one of "
            f"{', '.join(get_args(LayerNorm))} as `{_NORM}`, got {arrays.shapes} and {norm!r}. "
            f"{_ADVICE}"
        )
    return TrainedMixes(mix_weights=weights, gammas=gammas, layer_norm=cast(LayerNorm, norm))
