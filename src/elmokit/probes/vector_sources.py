"""Sources of the vectors that a probe examines: biLM layers, trained or random, and static words.

A source gives each word one vector or several ("layer 0", "layer 1", …), so a biLM reads a text
once however many of its layers are probed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.field_checks import check_choice
from elmokit.inference.results import Layers, check_layers
from elmokit.inference.state import StartState
from elmokit.shapes import Float
from elmokit.tasks.formats.senses import SenseOccurrence, SenseSentence
from elmokit.tasks.inputs.layer_cache import Sentence, keep_layers
from elmokit.vectors.static_vectors import StaticVectors
from elmokit.vectors.vector_files import read_vectors, read_vectors_of
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import load_model

TRAINED, UNTRAINED = "layer", "random"
"""First words of the names of a biLM's layers, and of those of an untrained one."""
OnSentence = Callable[[], None]


@runtime_checkable
class VectorSource(Protocol):
    """Gives each word S vectors."""

    names: tuple[str, ...]

    def stream(self, sentences: Iterable[Sentence]) -> Iterator[np.ndarray]:
        """Yield an array (S, W, X) for each sentence, in order, in bounded memory."""
        ...

    def keep(self, sentences: Sequence[Sentence]) -> list[np.ndarray]:
        """Return the same arrays for sentences that are read repeatedly."""
        ...


class LayerSource:
    """The layers of a biLM: ``"all"``, each by itself, ``"top"``, ``"average"`` or one number.

    ``label`` is the first word of the names, ``state`` what every sentence starts from. `keep`
    stores layers in ``cache_dir``, by default the user's cache.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        layers: Layers | str = "all",
        label: str = TRAINED,
        state: StartState | str = "reset",
        cache_dir: Path | None = None,
        on_sentence: OnSentence = lambda: None,
    ) -> None:
        self.layers = check_layers(layers, embedder.num_layers)
        self.state: StartState = cast(StartState, check_choice(state, StartState, name="state"))
        self.embedder, self._cache_dir, self._on_sentence = embedder, cache_dir, on_sentence
        ways = range(embedder.num_layers) if self.layers == "all" else [self.layers]
        self.names = tuple(f"{label} {way}" for way in ways)

    def stream(self, sentences: Iterable[Sentence]) -> Iterator[np.ndarray]:
        """Yield an array (S, W, 2D), float32, for each sentence."""
        stream = self.embedder.embed_stream(
            map(list, sentences), layers=self.layers, state=self.state
        )
        for vectors in stream:
            self._on_sentence()
            yield vectors if self.layers == "all" else vectors[None]

    def keep(self, sentences: Sequence[Sentence]) -> list[np.ndarray]:
        """Return an array (S, W, 2D) for each sentence; the layers stay on disk as float16."""
        # all layers are kept, also where one is asked for: the next probe may want another
        cache = keep_layers(
            self.embedder, sentences, self._cache_dir, state=self.state,
            on_progress=lambda *_: self._on_sentence(),
        )  # fmt: skip
        return [self._pick(cache[index].transpose(1, 0, 2)) for index in range(len(cache))]

    def _pick(self, layers: np.ndarray) -> np.ndarray:
        """Select from all layers: (L, W, 2D) -> (S, W, 2D)."""
        if self.layers == "all":
            return layers
        if self.layers == "average":
            return layers.mean(axis=0, keepdims=True, dtype=np.float32)
        return layers[-1:] if self.layers == "top" else layers[self.layers :][:1]


class StaticSource:
    """Static word vectors, under one name; a word without one has zeros."""

    names: tuple[str, ...] = ("static",)

    def __init__(self, static: StaticVectors) -> None:
        self.static = static

    def stream(self, sentences: Iterable[Sentence]) -> Iterator[np.ndarray]:
        """Yield an array (1, W, S), float32, for each sentence."""
        for words in sentences:
            ids = np.array([self.static.id_of(word) for word in words], dtype=np.int64)
            yield self.static.values[ids][None]

    def keep(self, sentences: Sequence[Sentence]) -> list[np.ndarray]:
        """Return the arrays of `stream`."""
        return list(self.stream(sentences))


def layer_sources(
    model: str | None,
    *,
    random_seed: int | None = None,
    device: str = "auto",
    precision: str = "fp32",
    **options: Any,
) -> list[LayerSource]:
    """Return the layers of a biLM and, given a seed, those of an untrained one of the same shape.

    ``model`` None is the model in the package; ``options`` are those of `LayerSource`.
    """
    path = find_model(model)
    sources: list[LayerSource] = []
    for label in (TRAINED,) if random_seed is None else (TRAINED, UNTRAINED):
        bilm = load_model(path)
        if label == UNTRAINED and random_seed is not None:
            bilm.reset_parameters(torch.Generator().manual_seed(random_seed))
        embedder = Embedder.load(bilm, device=device, precision=precision)
        sources.append(LayerSource(embedder, label=label, **options))
    return sources


def static_source(vectors: Path, words: Collection[str] | None = None) -> StaticSource:
    """Return the static vectors of a file, of these words or (None) of all."""
    return StaticSource(read_vectors(vectors) if words is None else read_vectors_of(vectors, words))


def occurrence_vectors(
    source: VectorSource, sentences: Iterable[SenseSentence], wanted: Collection[str]
) -> Iterator[tuple[SenseOccurrence, Float[np.ndarray, "S X"]]]:
    """Yield the annotated words with a ``wanted`` name, and the mean vectors of their words."""
    read = [part for part in sentences if any(word.name in wanted for word in part.occurrences)]
    stream = source.stream([sentence.tokens for sentence in read])
    for sentence, vectors in zip(read, stream, strict=True):
        for word in sentence.occurrences:
            if word.name in wanted:
                yield word, vectors[:, word.start : word.end].mean(axis=1)


def check_names(sources: Sequence[VectorSource]) -> list[str]:
    """Return the names of all sources."""
    names = [name for source in sources for name in source.names]
    if not names or len(set(names)) < len(names):
        raise InputError(
            f"`sources` must have vectors of distinct names, got {', '.join(names) or 'none'}."
        )
    return names
