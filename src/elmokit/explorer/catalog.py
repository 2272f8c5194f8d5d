"""``explorer.json``: what a copy of the page can show, and where it is computed."""

import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
from safetensors.numpy import save as tensor_bytes

from elmokit.bilm.softmax import AdaptiveSoftmax
from elmokit.errors import MissingExtraError
from elmokit.explorer.prepared import PREPARED_NAME, language_of, pack_language, prepared_layers
from elmokit.files.remote import AnyFile
from elmokit.inference.frozen_bilm import FrozenBiLM
from elmokit.inference.warm_state import warm_state, warm_text
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.version import __version__
from elmokit.weights.locate import CONFIG_NAME, find_model, lasting_name
from elmokit.weights.model_dir import PretrainedBiLM, load_model
from elmokit.weights.model_files import CARD_NAME, VOCAB_NAME, WEIGHTS_NAME

log = logging.getLogger(__name__)

ComputedBy = Literal["browser", "server"]
CATALOG_NAME = "explorer.json"
COMPRESSED = ".gz"
"""What the name of a file adds that the page itself unpacks: few web servers compress."""
MAX_BROWSER_BYTES = 64_000_000
"""Of the weights of a model that a browser runs."""
MAX_WORDS, MAX_BYTES, MAX_TOP = 5000, 200_000, 1000
"""Of one call."""
MAX_NAMED = 100_000
"""Likeliest words that one call names: words of the text times ``top``."""
_NAMED_FILES = 3
_TOKENIZERS_IN_BROWSER = ("simple", "whitespace")


def warm_file(model: PretrainedBiLM) -> bytes:
    """Return the warm state as a safetensors file: hidden (N, 2, D) and cell (N, 2, H)."""
    state = warm_state(FrozenBiLM(model), warm_text(model.warm_text))
    arrays = {"hidden": state.hidden[:, :, 0], "cell": state.cell[:, :, 0]}
    return tensor_bytes({
        name: np.ascontiguousarray(array.float().cpu().numpy()) for name, array in arrays.items()
    })  # fmt: skip


MADE_FILES: dict[str, Callable[[PretrainedBiLM], bytes]] = {
    "warm.safetensors": warm_file,
    PREPARED_NAME: prepared_layers,
}
"""What is computed for the page, which a browser would take seconds to do."""


@dataclass(frozen=True)
class ExploredModel:
    """A model of the page."""

    name: str
    directory: Path
    model: PretrainedBiLM
    _made: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def made_file(self, name: str) -> bytes:
        """Return one of `MADE_FILES`, computed when it is first asked for, by any thread."""
        with self._lock:
            if name not in self._made:
                self._made[name] = MADE_FILES[name](self.model)
            return self._made[name]

    def files(self) -> list[Path]:
        """Return the files of the model directory that a browser reads, and the card."""
        names = (CONFIG_NAME, WEIGHTS_NAME, VOCAB_NAME, CARD_NAME)
        found = []
        for name in names:  # compressed only where there is no other
            both = (self.directory / (name + end) for end in ("", COMPRESSED))
            found += [path for path in both if path.is_file()][:1]
        return found

    def why_not_in_browser(self) -> str | None:
        """Say why a browser cannot run the model; none if it can."""
        num_bytes = (self.directory / WEIGHTS_NAME).stat().st_size
        if num_bytes > MAX_BROWSER_BYTES:
            return f"its weights have {num_bytes:,} bytes, more than {MAX_BROWSER_BYTES:,}"
        if isinstance(self.model.softmax, AdaptiveSoftmax):
            return "its softmax is adaptive"
        if self.model.config.lexicon is not None:
            return "its characters are not bytes"
        return None

    def entry(self, *, served: bool) -> dict[str, Any]:
        """Return the model's part of the catalog (ModelInfo in ``compute/client.js``)."""
        model, config = self.model, self.model.config
        compute: ComputedBy = "server" if served and self.why_not_in_browser() else "browser"
        exact, tokenized_by = self._tokenizer(served=served, compute=compute)
        files = {path.name: path.stat().st_size for path in self.files()}
        model_hash = model.model_hash()
        return {
            "name": self.name,
            "title": self.name,
            "language": language_of(model),
            "compressed": WEIGHTS_NAME + COMPRESSED in files,
            "path": "" if compute == "server" else f"models/{quote(self.name)}/",
            "prepared": f"models/{quote(self.name)}/{PREPARED_NAME}",
            "pack": f"packs/senses.{pack_language(model)}.json",
            "hash": model_hash,
            "version": f"{__version__}-{model.fingerprint(model_hash)[:16]}",
            "compute": compute,
            "tokenizer": "exact" if exact else "as-typed",
            "tokenized_by": tokenized_by,
            "tokenizer_name": model.tokenizer.name,
            "tokenizer_version": model.tokenizer.version,
            "normalization": config.char_vocab.normalization,
            "has_softmax": model.softmax is not None and model.word_vocab is not None,
            "num_words": None if model.word_vocab is None else len(model.word_vocab),
            "num_layers": model.num_layers,
            "dim": model.output_dim,
            "cell_dim": config.lstm.cell_dim,
            "max_characters": config.char_cnn and config.char_vocab.max_characters,
            "filters": [] if config.char_cnn is None else config.char_cnn.filters,
            "num_highway": 0 if config.char_cnn is None else config.char_cnn.num_highway,
            "num_parameters": model.num_parameters(),
            "num_bytes": sum(size for name, size in files.items() if name != CARD_NAME),
        }

    def _tokenizer(self, *, served: bool, compute: ComputedBy) -> tuple[bool, ComputedBy]:
        """Return whether tokens are those of Python, and where they are made."""
        if self.model.tokenizer.name in _TOKENIZERS_IN_BROWSER:
            return True, compute
        if served:
            try:
                build_tokenizer(self.model.tokenizer)
                return True, "server"
            except MissingExtraError as error:
                log.warning("%s: words are read as typed, between spaces: %s", self.name, error)
        return False, compute


def load_explored(names: Sequence[str]) -> list[ExploredModel]:
    """Load models by directory or name; the name in the page is that of the directory.

    Raises:
        FileNotFoundError, FormatError, ConfigError: as `load_model`.
    """
    directories = list(dict.fromkeys(find_model(name).resolve() for name in names))
    own = distinct_names(Path(lasting_name(directory)).name for directory in directories)
    return [
        ExploredModel(name, directory, load_model(directory))
        for name, directory in zip(own, directories, strict=True)
    ]


def distinct_names(names: Iterable[str]) -> list[str]:
    """Return names in their order, numbered from the second of the same name on: x, x-2, x-3."""
    found: list[str] = []
    for name in names:
        numbered = (name if n == 1 else f"{name}-{n}" for n in itertools.count(1))
        found.append(next(one for one in numbered if one not in found))
    return found


def catalog(
    models: Sequence[ExploredModel],
    *,
    served: bool,
    runs: Sequence[dict[str, str]] = (),
    tasks: Sequence[dict[str, str]] = (),
    corpus: Sequence[AnyFile] = (),
) -> dict[str, Any]:
    """Return the contents of ``explorer.json`` (Catalog in ``compute/client.js``)."""
    return {
        "version": __version__,
        "compute": "server" if served else "browser",
        "limits": {
            "max_words": MAX_WORDS,
            "max_bytes": MAX_BYTES,
            "max_top": MAX_TOP,
            "max_named": MAX_NAMED,
        },
        "models": [model.entry(served=served) for model in models],
        "runs": list(runs),
        "tasks": list(tasks),
        "corpus": _label_of(corpus),
    }


def _label_of(corpus: Sequence[AnyFile]) -> str | None:
    """Return the names of a few files; of many the first, the last, and how many there are."""
    names = [path.name for path in corpus]
    if len(names) > _NAMED_FILES:
        return f"{names[0]} … {names[-1]} ({len(names):,})"
    return ", ".join(names) or None
