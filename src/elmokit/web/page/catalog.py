"""What a copy of the page consists of; ``explorer.json``: what it can show, computed where."""

import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from elmokit.bilm.softmax import AdaptiveSoftmax
from elmokit.errors import MissingExtraError
from elmokit.files.json_files import json_bytes
from elmokit.files.remote import AnyFile
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.version import __version__
from elmokit.web.page.made_files import MADE_FILES, PREPARED_NAME, STATIC, language_of, pack_name
from elmokit.web.page.text_rules import RULES_NAME, text_rules
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

    def paths(self) -> list[Path]:
        """Return the files of the model directory that a browser reads, and the card."""
        names = (CONFIG_NAME, WEIGHTS_NAME, VOCAB_NAME, CARD_NAME)
        plain = [self.directory / name for name in names]
        packed = [path.with_name(path.name + COMPRESSED) for path in plain]
        pairs = zip(plain, packed, strict=True)
        return [path if path.is_file() else other for path, other in pairs
                if path.is_file() or other.is_file()]  # fmt: skip

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
        sizes = {path.name: path.stat().st_size for path in self.paths()}
        model_hash = model.model_hash()
        return {
            "name": self.name,
            "title": self.name,
            "language": language_of(model),
            "compressed": WEIGHTS_NAME + COMPRESSED in sizes,
            "path": "" if compute == "server" else f"models/{quote(self.name)}/",
            "prepared": f"models/{quote(self.name)}/{PREPARED_NAME}",
            "pack": pack_name(model),
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
            "num_bytes": sum(size for name, size in sizes.items() if name != CARD_NAME),
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
    """Load models by directory or name; the name in the page is that of the directory."""
    directories = list(dict.fromkeys(find_model(name).resolve() for name in names))
    own = distinct_names(Path(lasting_name(directory)).name for directory in directories)
    return [
        ExploredModel(name, directory, load_model(directory))
        for name, directory in zip(own, directories, strict=True)
    ]


def distinct_names(names: Iterable[str]) -> list[str]:
    """Return names in their order, numbered from the second of the same name on: x, x-2, x-3."""
    distinct: list[str] = []
    for name in names:
        numbered = (name if n == 1 else f"{name}-{n}" for n in itertools.count(1))
        distinct.append(next(candidate for candidate in numbered if candidate not in distinct))
    return distinct


def catalog(
    models: Sequence[ExploredModel],
    *,
    served: bool,
    runs: Iterable[str] = (),
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
        "runs": [{"name": name, "title": name} for name in runs],
        "tasks": list(tasks),
        "corpus": _label_of(corpus),
    }


def _label_of(corpus: Sequence[AnyFile]) -> str | None:
    """Return the names of a few files; of many the first, the last, and how many there are."""
    names = [path.name for path in corpus]
    if len(names) > _NAMED_FILES:
        return f"{names[0]} … {names[-1]} ({len(names):,})"
    return ", ".join(names) or None


def page_files(
    content: dict[str, Any], models: Sequence[ExploredModel]
) -> dict[str, Callable[[], bytes]]:
    """Return how to read each file of a copy of the page, by its path in it."""
    catalog_bytes, rules = json_bytes(content), json_bytes(text_rules(), indent=None)
    static = [path for path in STATIC.rglob("*") if path.is_file()]
    files = {path.relative_to(STATIC).as_posix(): path.read_bytes for path in static}
    files |= {CATALOG_NAME: lambda: catalog_bytes, RULES_NAME: lambda: rules}
    for model in models:
        folder = f"models/{model.name}"
        files |= {f"{folder}/{path.name}": path.read_bytes for path in model.paths()}
        files |= {f"{folder}/{name}": partial(model.made_file, name) for name in MADE_FILES}
    return files
