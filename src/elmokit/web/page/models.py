"""A model of the page, and the files that are computed from it.

A browser would take seconds to compute them. ``packs/senses.*.json`` hold sentences with ambiguous
words; when a model is served or exported, their layers are computed with that very model and stored
beside it, so they cannot be out of date: int8 with one scale for each vector of one direction. The
hash of the model stands in the metadata, and the page refuses a file of another model.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from safetensors.numpy import save as tensor_bytes

from elmokit.embed.embedder import Embedder
from elmokit.errors import MissingExtraError
from elmokit.inference.frozen_bilm import FrozenBiLM, warm_state, warm_text
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.version import __version__
from elmokit.weights.locate import CONFIG_NAME, find_model, lasting_name
from elmokit.weights.model_files import CARD_NAME, VOCAB_NAME, WEIGHTS_NAME
from elmokit.weights.stored_bilm import StoredBiLM, read_bilm

log = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"
"""The files of the page."""
COMPRESSED = ".gz"
"""What the name of a file adds that the page itself unpacks: few web servers compress."""
MAX_BROWSER_BYTES = 64_000_000
"""Size of the weights of a model that a browser runs."""
MAX_WORDS, MAX_BYTES, MAX_TOP = 5000, 200_000, 1000
"""Limits of one call of the page, in the browser and on a server."""
MAX_NAMED = 100_000
"""Likeliest words that one call names: words of the text times ``top``."""
PREPARED_NAME = "prepared.safetensors"

_TOKENIZERS_IN_BROWSER = ("simple", "whitespace")


@dataclass(frozen=True)
class ExploredModel:
    """A model of the page."""

    name: str
    directory: Path
    model: StoredBiLM
    _made: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def made_file(self, name: str) -> bytes:
        """Return one of `MADE_FILES`, computed when it is first asked for, by any thread."""
        with self._lock:
            if name not in self._made:
                self._made[name] = MADE_FILES[name](self.model)
            return self._made[name]

    def paths(self) -> list[Path]:
        """Return the files of the model directory that a browser reads, and the card."""
        plain = (self.directory / n for n in (CONFIG_NAME, WEIGHTS_NAME, VOCAB_NAME, CARD_NAME))
        pairs = ((path, path.with_name(path.name + COMPRESSED)) for path in plain)
        return [path for pair in pairs for path in [p for p in pair if p.is_file()][:1]]

    def why_not_in_browser(self) -> str | None:
        """Say why a browser cannot run the model; None if it can."""
        num_bytes = (self.directory / WEIGHTS_NAME).stat().st_size
        if num_bytes > MAX_BROWSER_BYTES:
            return f"its weights have {num_bytes:,} bytes, more than {MAX_BROWSER_BYTES:,}"
        softmax = self.model.softmax_config
        if softmax is not None and softmax.kind == "adaptive":
            return "its softmax is adaptive"
        if self.model.config.lexicon is not None:
            return "its characters are not bytes"
        return None

    def entry(self, *, served: bool) -> dict[str, Any]:
        """Return the model's part of the catalog (ModelInfo in ``compute/client.js``)."""
        model, config = self.model, self.model.config
        compute = "server" if served and self.why_not_in_browser() else "browser"
        tokenizer, tokenized_by = self._tokenized(served=served, compute=compute)
        sizes = {path.name: path.stat().st_size for path in self.paths()}
        model_hash = model.model_hash()
        return {
            "name": self.name, "title": self.name, "language": language_of(model),
            "compressed": WEIGHTS_NAME + COMPRESSED in sizes,
            "path": "" if compute == "server" else f"models/{quote(self.name)}/",
            "prepared": f"models/{quote(self.name)}/{PREPARED_NAME}", "pack": pack_name(model),
            "hash": model_hash, "version": f"{__version__}-{model.fingerprint(model_hash)[:16]}",
            "compute": compute, "tokenizer": tokenizer, "tokenized_by": tokenized_by,
            "tokenizer_name": model.tokenizer.name, "tokenizer_version": model.tokenizer.version,
            "normalization": config.char_vocab.normalization,
            "has_softmax": model.num_target_words is not None and model.word_vocab is not None,
            "num_words": None if model.word_vocab is None else len(model.word_vocab),
            "num_layers": model.num_layers, "dim": model.output_dim,
            "cell_dim": config.lstm.cell_dim,
            "max_characters": config.char_cnn and config.char_vocab.max_characters,
            "filters": [] if config.char_cnn is None else config.char_cnn.filters,
            "num_highway": 0 if config.char_cnn is None else config.char_cnn.num_highway,
            "num_parameters": model.num_parameters(),
            "num_bytes": sum(size for name, size in sizes.items() if name != CARD_NAME),
        }  # fmt: skip

    def _tokenized(self, *, served: bool, compute: str) -> tuple[str, str]:
        """Return how text is split, and where."""
        name = self.model.tokenizer.name
        if name in _TOKENIZERS_IN_BROWSER:
            return "exact", compute
        if served:
            try:
                build_tokenizer(self.model.tokenizer)
            except MissingExtraError as error:
                log.warning("%s: the page splits text without its tokenizer: %s", self.name, error)
            else:
                return "exact", "server"
        return "close" if name == "korean" and compute == "browser" else "as-typed", compute


def load_explored(names: Sequence[str]) -> list[ExploredModel]:
    """Load models by directory or name; the name in the page is that of the directory."""
    directories = list(dict.fromkeys(find_model(name).resolve() for name in names))
    own = distinct_names(Path(lasting_name(directory)).name for directory in directories)
    return [
        ExploredModel(name, directory, read_bilm(directory))
        for name, directory in zip(own, directories, strict=True)
    ]


def distinct_names(names: Iterable[str]) -> list[str]:
    """Return names in their order, numbered from the second of the same name on: x, x-2, x-3."""
    distinct: list[str] = []
    for name in names:
        numbered = (name if n == 1 else f"{name}-{n}" for n in count(1))
        distinct.append(next(candidate for candidate in numbered if candidate not in distinct))
    return distinct


def language_of(model: StoredBiLM) -> str | None:
    """Return the language that a model states, as ``ko`` for ``ko-KR``; else of its tokenizer."""
    stated = str(model.training_metadata.get("language") or "").lower()
    return stated.split("-")[0] or ("ko" if model.tokenizer.name == "korean" else None)


def pack_name(model: StoredBiLM) -> str:
    """Return the file with the prepared sentences for a model; English if it has none."""
    name = f"packs/senses.{language_of(model)}.json"
    return name if (STATIC / name).is_file() else "packs/senses.en.json"


def prepared_layers(model: StoredBiLM) -> bytes:
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
        scale = np.maximum(np.abs(rows).max(axis=1), 1e-30) / 127  # (R,)
        tensors[name] = np.round(rows / scale[:, None]).astype(np.int8)
        tensors[f"{name}.scale"] = scale.astype(np.float32)
    return tensor_bytes(tensors, metadata={"model": model.model_hash()})


def warm_file(model: StoredBiLM) -> bytes:
    """Return the warm state as a safetensors file: hidden (N, 2, D) and cell (N, 2, H)."""
    state = warm_state(FrozenBiLM(model), warm_text(model.warm_text))
    hidden, cell = (np.ascontiguousarray(part[:, :, 0]) for part in (state.hidden, state.cell))
    return tensor_bytes({"hidden": hidden, "cell": cell})


MADE_FILES: dict[str, Callable[[StoredBiLM], bytes]] = {
    "warm.safetensors": warm_file,
    PREPARED_NAME: prepared_layers,
}
