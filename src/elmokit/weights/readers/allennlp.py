"""Archives of AllenNLP: the biLM inside a task model, and the mixtures trained with it.

Their state dicts hold an `Elmo` module below any name. Its options are outside the archive, or in
it below ``fta/``; sizes are taken from the tensors. Transformer ELMos have no LSTM and are refused.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from elmokit.bilm.config import LayerNorm
from elmokit.errors import FormatError, InputError
from elmokit.text.char_vocab import DEFAULT_MAX_CHARACTERS
from elmokit.weights.bilm_tf import build_bilm
from elmokit.weights.model_files import TrainedMixes
from elmokit.weights.readers.contents import Contents, ImportedModel
from elmokit.weights.readers.tensorflow import options_or_released
from elmokit.weights.readers.torch_files import TorchArrays, read_state

_MARK = "_elmo_lstm._token_embedder._char_embedding_weights"
_TRANSFORMER = re.compile(r"(^|[._])(forward|backward)_transformer\.")
_CACHED_WORDS = "_elmo_lstm._word_embedding.weight"


def read(contents: Contents) -> ImportedModel:
    path = contents.need("weights", "PyTorch")
    state = read_state(path)
    prefix, elmo = _find_elmo(state, contents.choices.name, path)
    outer = prefix[: prefix.removesuffix(".").rfind(".") + 1]  # of the module around the ELMo
    own = {name: tensor for name, tensor in state.items() if not name.endswith(_CACHED_WORDS)}
    arrays = TorchArrays(own, f"{prefix}_elmo_lstm.", path)
    arrays.add("char_embed", arrays.take("_token_embedder._char_embedding_weights", 2)[1:])
    arrays.add_bilm(
        filters="_token_embedder.char_conv_{}", projection="_token_embedder._projection",
        highways="_token_embedder._highways._layers.{}", lstm="_elmo_lstm.",
    )  # fmt: skip
    notes = ["the parts of the task model other than its ELMo are left out"]
    files, language = contents.of("options"), elmo.rpartition("_")[2]
    # options of several ELMos go by their names
    files = [file for file in files if file.name.rpartition(".")[2] == language] or files
    options, source, assumed = options_or_released(contents, files, arrays)
    notes += assumed
    if isinstance(options.get("char_cnn"), dict):
        # AllenNLP ignores the options here
        options["char_cnn"]["max_characters_per_token"] = DEFAULT_MAX_CHARACTERS
    model = build_bilm(options, arrays, source=source)
    # the mixtures are in the ELMo, or shared by several ELMos in the module around it
    above = next((one for one in (prefix, outer) if f"{one}scalar_mix_0.gamma" in state), None)
    if above is not None:
        mixes = TorchArrays(state, f"{above}scalar_mix_", path)
        model.mixes = _mixes(mixes, model.num_layers, _layer_norm(contents))
    for left_out in (f"{outer}_projection.weight", f"{outer}aligning_"):
        if any(name.startswith(left_out) for name in state):
            notes.append(f"`{left_out}*`, which follows the mixture, is left out")
    origin = f"{contents.listed([path])}: {elmo}"
    return ImportedModel(model=model, origin=origin, notes=tuple(notes))


def _find_elmo(state: Mapping[str, Tensor], name: str | None, path: Path) -> tuple[str, str]:
    """Return prefix and name of the only ELMo of a state dict, or of the one that is wanted."""
    prefixes = [key.removesuffix(_MARK) for key in sorted(state) if key.endswith(_MARK)]
    elmos = {
        prefix.removesuffix(".").removesuffix("._elmo") or "_elmo": prefix for prefix in prefixes
    }
    if not elmos:
        hint = "A model that was trained on stored vectors does not hold its ELMo."
        if any(_TRANSFORMER.search(key) for key in state):
            hint = "It is a transformer ELMo; only ELMos of LSTM layers are read."
        raise FormatError(
            f"{path}: no ELMo in its {len(state)} tensors ({', '.join(sorted(state)[:3])}): one "
            f"whose name ends in `{_MARK}` was expected. {hint}"
        )
    matches = [elmo for elmo in elmos if name in (None, elmo, *elmo.split("."))]
    if len(matches) != 1:
        raise InputError(
            f"{path} has {len(elmos)} ELMos: {', '.join(elmos)}. Choose one with --name, got "
            f"{name!r}."
        )
    return elmos[matches[0]], matches[0]


def _mixes(arrays: TorchArrays, num_layers: int, norm: LayerNorm) -> TrainedMixes:
    rows, gammas = [], []
    for number in range(arrays.count("{}.gamma")):
        name = f"{number}.scalar_parameters"
        count = arrays.count(f"{name}.{{}}")
        if count != num_layers:
            raise FormatError(
                f"{arrays.path}: {count} of `{arrays.prefix}{name}` for {num_layers} layers."
            )
        rows.append(np.concatenate([arrays.take(f"{name}.{k}", 1)[:1] for k in range(count)]))
        gammas.append(arrays.take(f"{number}.gamma", 1)[0])
    return TrainedMixes(mix_weights=np.stack(rows), gammas=np.stack(gammas), layer_norm=norm)


def _layer_norm(contents: Contents) -> LayerNorm:
    """Return what the archive's configuration says of normalization before mixing."""
    tables: list[Any] = [*contents.all_settings().values()]
    while tables:
        table = tables.pop()
        if isinstance(table, dict):
            if table.get("do_layer_norm", False) is True:
                return "batch_with_boundaries"
            table = list(table.values())
        tables += table if isinstance(table, list) else ()
    return "none"
