"""Files that are computed for the page, because a browser would take seconds to do it.

``packs/senses.*.json`` hold sentences with ambiguous words. When a model is served or exported,
their layers are computed with that very model and stored beside it, so they cannot be out of date:
int8 with one scale for each vector of one direction. The hash of the model stands in the metadata,
and the page refuses a file of another model.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from safetensors.numpy import save as tensor_bytes

from elmokit.embed.embedder import Embedder
from elmokit.inference.frozen_bilm import FrozenBiLM
from elmokit.inference.warm_state import warm_state, warm_text
from elmokit.weights.model_dir import PretrainedBiLM

STATIC = Path(__file__).parent / "static"
"""The files of the page."""
PREPARED_NAME = "prepared.safetensors"

_LARGEST = 127
_LANGUAGES_OF_TOKENIZERS = {"korean": "ko"}


def language_of(model: PretrainedBiLM) -> str | None:
    """Return the language that a model states, as ``ko`` for ``ko-KR``; else of its tokenizer."""
    stated = str(model.training_metadata.get("language") or "").lower()
    return stated.split("-")[0] or _LANGUAGES_OF_TOKENIZERS.get(model.tokenizer.name)


def pack_name(model: PretrainedBiLM) -> str:
    """Return the file with the prepared sentences for a model; English if it has none."""
    name = f"packs/senses.{language_of(model)}.json"
    return name if (STATIC / name).is_file() else "packs/senses.en.json"


def prepared_layers(model: PretrainedBiLM) -> bytes:
    """Return a safetensors file with the layers of all prepared sentences, from the zero state.

    ``static`` (U, D): the token vectors of the distinct words, in the order of their first
    occurrence. ``context`` (N (L - 1) 2, D): for each of the N words, in order, its layers from
    the first on, forward half, then backward half.
    """
    entries: list[dict[str, Any]] = json.loads((STATIC / pack_name(model)).read_bytes())["entries"]
    sentences = [sentence["words"] for entry in entries for sentence in entry["sentences"]]
    embedder = Embedder(model, device="cpu")
    layers = np.concatenate(embedder.embed(sentences), axis=1)  # (L, N, 2D)
    words = [word for sentence in sentences for word in sentence]
    first = {word: i for i, word in reversed(list(enumerate(words)))}
    dim = layers.shape[2] // 2
    tensors: dict[str, np.ndarray] = {}
    for name, rows in (
        ("static", layers[0, sorted(first.values()), :dim]),
        ("context", layers[1:].transpose(1, 0, 2).reshape(-1, dim)),
    ):
        tensors[name], tensors[f"{name}.scale"] = _in_int8(rows)
    return tensor_bytes(tensors, metadata={"model": model.model_hash()})


def _in_int8(rows: Float[np.ndarray, "R D"]) -> tuple[np.ndarray, np.ndarray]:
    scale = np.maximum(np.abs(rows).max(axis=1), 1e-30) / _LARGEST  # (R,)
    return np.round(rows / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def warm_file(model: PretrainedBiLM) -> bytes:
    """Return the warm state as a safetensors file: hidden (N, 2, D) and cell (N, 2, H)."""
    state = warm_state(FrozenBiLM(model), warm_text(model.warm_text))
    arrays = {"hidden": state.hidden[:, :, 0], "cell": state.cell[:, :, 0]}
    return tensor_bytes({
        name: np.ascontiguousarray(array) for name, array in arrays.items()
    })  # fmt: skip


MADE_FILES: dict[str, Callable[[PretrainedBiLM], bytes]] = {
    "warm.safetensors": warm_file,
    PREPARED_NAME: prepared_layers,
}
