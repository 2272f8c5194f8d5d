"""Archives of AllenNLP: the biLM inside a task model, and the mixtures trained with it.

Their state dicts hold an `Elmo` module below any name. Its options are outside the archive, or in
it below ``fta/``; sizes are taken from the tensors. Transformer ELMos have no LSTM and are refused.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmokit.bilm.scalar_mix import LayerNorm
from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.text.char_vocab import DEFAULT_MAX_CHARACTERS
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.weights.bilm_tf_options import ORIGINAL_OPTIONS, parse_options, read_options
from elmokit.weights.mix_file import TrainedMixes
from elmokit.weights.model_dir import PretrainedBiLM
from elmokit.weights.readers.contents import Contents, settings
from elmokit.weights.readers.imported import ImportedModel
from elmokit.weights.readers.sizes import RELEASED_ASSUMED, released_options
from elmokit.weights.readers.torch_files import read_state
from elmokit.weights.readers.torch_layout import TorchParameters
from elmokit.weights.tensor_files import WithoutStorage

_MARK = "_elmo_lstm._token_embedder._char_embedding_weights"
_TRANSFORMER = re.compile(r"(^|[._])(forward|backward)_transformer\.")
_CACHED_WORDS = "_elmo_lstm._word_embedding.weight"


@dataclass(frozen=True)
class _Elmo:
    """An `Elmo` module in a state dict."""

    prefix: str
    """With the last dot, or empty."""

    @property
    def name(self) -> str:
        return self.prefix.removesuffix(".").removesuffix("._elmo") or "_elmo"

    @property
    def outer(self) -> str:
        """The prefix of the module around it."""
        return self.prefix[: self.prefix.removesuffix(".").rfind(".") + 1]


def recognizes(contents: Contents) -> bool:
    """Tell whether there are tensors of PyTorch."""
    return bool(contents.of("PyTorch"))


def read(contents: Contents) -> ImportedModel:
    """Read the only ELMo, or the one that was chosen by name."""
    path = contents.only("PyTorch", "tensors (torch.save)", "weights")
    state = read_state(path)
    elmo = _choose(_find(state, path), contents.choices.name, path)
    parameters = TorchParameters(
        {name: one for name, one in state.items() if not name.endswith(_CACHED_WORDS)},
        f"{elmo.prefix}_elmo_lstm.",
        path,
    )
    cnn = "_token_embedder."
    parameters.move_char_cnn(
        filters=f"{cnn}char_conv_{{}}",
        highways=f"{cnn}_highways._layers.{{}}",
        embedding=f"{cnn}_char_embedding_weights",
        projection=f"{cnn}_projection",
    )
    parameters.move_lstm("_elmo_lstm.")
    notes = ["the parts of the task model other than its ELMo are left out"]
    source = _options_file(contents, elmo)
    if source is None:
        options = released_options(_rows_as_stored(parameters.shapes()), source=path)
        notes.append(RELEASED_ASSUMED)
    else:
        options = read_options(source)
    if isinstance(options.get("char_cnn"), dict):
        # AllenNLP ignores the options here
        options["char_cnn"]["max_characters_per_token"] = DEFAULT_MAX_CHARACTERS
    model = _build(options, parameters, source or path)
    mixes = _mixes(state, elmo, model.num_layers, _layer_norm(contents), path)
    if f"{elmo.outer}_projection.weight" in state:
        notes.append(f"`{elmo.outer}_projection`, which follows the mixture, is left out")
    if any(name.startswith(f"{elmo.outer}aligning_") for name in state):
        notes.append(f"`{elmo.outer}aligning_*`, which follow the mixture, are left out")
    return ImportedModel(
        model=model,
        origin=f"{contents.relative(path)}: {elmo.name}",
        mixes=mixes,
        notes=tuple(notes),
    )


def _find(state: Mapping[str, Tensor], path: Path) -> list[_Elmo]:
    found = [_Elmo(name.removesuffix(_MARK)) for name in sorted(state) if name.endswith(_MARK)]
    if found:
        return found
    if any(_TRANSFORMER.search(name) for name in state):
        raise FormatError(
            f"{path}: a transformer ELMo (its tensors are of `forward_transformer` and "
            "`backward_transformer`). Only ELMos of LSTM layers are read."
        )
    names = ", ".join(sorted(state)[:3]) or "none"
    raise FormatError(
        f"{path}: no ELMo in its {len(state)} tensors ({names}): one whose name ends in `{_MARK}` "
        "was expected. A model that was trained on stored vectors does not hold its ELMo."
    )


def _choose(found: list[_Elmo], name: str | None, path: Path) -> _Elmo:
    names = ", ".join(elmo.name for elmo in found)
    if name is None:
        if len(found) == 1:
            return found[0]
        raise InputError(f"{path} has {len(found)} ELMos: {names}. Choose one with --name.")
    chosen = [elmo for elmo in found if name == elmo.name or name in elmo.name.split(".")]
    if len(chosen) != 1:
        raise InputError(
            f"{path}: {len(chosen) or 'no'} ELMos have the name {name!r}; there are {names}."
        )
    return chosen[0]


def _rows_as_stored(shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    rows, dim = shapes["char_embed"]
    return shapes | {"char_embed": (rows - 1, dim)}


def _options_file(contents: Contents, elmo: _Elmo) -> Path | None:
    """Return the options that were given or archived; those of several go by the ELMo's name."""
    if contents.choices.options is not None:
        return contents.given(contents.choices.options, "options")
    if not (found := contents.of("options")):
        contents.refuse_unreadable()
    if len(found) > 1:
        language = elmo.name.rpartition("_")[2]
        found = [path for path in found if path.name.rpartition(".")[2] == language] or found
    if len(found) > 1:
        raise FormatError(
            f"{contents.folder} has several options files: {contents.listed(found)}. Choose one "
            "with --options."
        )
    return found[0] if found else None


def _build(options: dict[str, Any], parameters: TorchParameters, source: Path) -> PretrainedBiLM:
    shapes = parameters.shapes()

    def matrix_shape(name: str, expected: str) -> tuple[int, int]:
        if name not in shapes:
            raise FormatError(
                f"{source}: no table `char_cnn`, so these are options of a model of words, but the "
                "ELMo in the archive reads characters. Give its own options with --options."
            )
        rows, dim = shapes[name][0], shapes[name][-1]
        return rows - 1, dim

    try:
        with WithoutStorage():
            config = parse_options(options, source=source, matrix_shape=matrix_shape)
            model = PretrainedBiLM(
                config,
                tokenizer=TokenizerConfig(name="whitespace"),
                training={ORIGINAL_OPTIONS: options},
                initialize=False,
            )
    except FormatError:
        raise
    except (ConfigError, ValueError) as error:
        raise FormatError(f"{source}: {error}") from error
    parameters.load_into(model)
    return model.eval()


# --- mixtures


def _mix_prefix(state: Mapping[str, Tensor], elmo: _Elmo) -> str | None:
    """Return where its mixtures are: in the ELMo, or shared by several around it."""
    prefixes = (elmo.prefix, elmo.outer)
    return next((one for one in prefixes if f"{one}scalar_mix_0.gamma" in state), None)


def _mixes(
    state: Mapping[str, Tensor], elmo: _Elmo, num_layers: int, norm: LayerNorm, path: Path
) -> TrainedMixes | None:
    if (prefix := _mix_prefix(state, elmo)) is None:
        return None
    rows, gammas = [], []
    mixes = TorchParameters(state, f"{prefix}scalar_mix_", path)
    for number in range(mixes.count("{}.gamma")):
        name = f"{number}.scalar_parameters"
        count = mixes.count(f"{name}.{{}}")
        if count != num_layers:
            raise FormatError(
                f"{path}: `{mixes.prefix}{name}` are {count}, expected {num_layers}, one for each "
                "layer."
            )
        rows.append([mixes.take(f"{name}.{k}", 1)[0] for k in range(count)])
        gammas.append(mixes.take(f"{number}.gamma", 1)[0])
    weights = torch.stack([torch.stack(row) for row in rows])
    return TrainedMixes(mix_weights=weights, gammas=torch.stack(gammas), layer_norm=norm)


def _layer_norm(contents: Contents) -> LayerNorm:
    """Return what the archive's configuration says of normalization before mixing."""
    contents.refuse_unreadable("config.json")
    found = [
        table.get("do_layer_norm", False)
        for path in contents.of("JSON")
        for table in _tables(settings(path))
        if {"options_file", "options_files", "do_layer_norm"} & table.keys()
    ]
    return "batch_with_boundaries" if True in found else "none"


def _tables(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from _tables(inner)
