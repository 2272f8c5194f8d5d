"""What a probe reads: annotated texts, and the vectors that it examines.

A source gives each word one vector or several ("layer 0", "layer 1", …), so a biLM reads a text
once however many of its layers are probed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import torch

from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError, InputError, check_choice
from elmokit.files.sources import COMPRESSIONS
from elmokit.inference.layers_and_states import Layers, StartState, check_layers
from elmokit.shapes import Float
from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.formats.conllu import read_conllu, read_morphemes
from elmokit.tasks.formats.data_files import find_split
from elmokit.tasks.formats.senses import (
    SenseInventory,
    SenseOccurrence,
    SenseSentence,
    read_sense_inventory,
    read_senses,
)
from elmokit.tasks.inputs.layer_cache import Sentence
from elmokit.tasks.task import Units
from elmokit.vectors.static_vectors import StaticVectors
from elmokit.vectors.vector_files import read_vectors, read_vectors_of
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import load_model

TRAINED, UNTRAINED = "layer", "random"
"""First words of the names of a biLM's layers, and of those of an untrained one."""


@runtime_checkable
class VectorSource(Protocol):
    """Gives each word S vectors."""

    names: tuple[str, ...]
    kept_as: type[np.floating]
    """Precision in which a probe that reads the vectors repeatedly keeps them."""

    def stream(self, sentences: Iterable[Sentence]) -> Iterator[np.ndarray]:
        """Yield an array (S, W, X) for each sentence, in order, in bounded memory."""
        ...


class LayerSource:
    """The layers of a biLM: ``"all"``, each by itself, ``"top"``, ``"average"`` or one number.

    ``label`` is the first word of the names, ``state`` what every sentence starts from.
    """

    kept_as = np.float16

    def __init__(
        self,
        embedder: Embedder,
        *,
        layers: Layers | str = "all",
        label: str = TRAINED,
        state: StartState | str = "reset",
        on_sentence: Callable[[], None] = lambda: None,
    ) -> None:
        self.layers = check_layers(layers, embedder.num_layers)
        self.state: StartState = cast(StartState, check_choice(state, StartState, name="state"))
        self.embedder, self._on_sentence = embedder, on_sentence
        ways = range(embedder.num_layers) if self.layers == "all" else [self.layers]
        self.names = tuple(f"{label} {way}" for way in ways)

    def stream(self, sentences: Iterable[Sentence]) -> Iterator[np.ndarray]:
        """Yield an array (S, W, 2D), float32, for each sentence."""
        for vectors in self.embedder.embed_stream(
            map(list, sentences), layers=self.layers, state=self.state
        ):
            self._on_sentence()
            yield vectors if self.layers == "all" else vectors[None]


class StaticSource:
    """Static word vectors, under one name; a word without one has zeros."""

    names: tuple[str, ...] = ("static",)
    kept_as = np.float32

    def __init__(self, static: StaticVectors) -> None:
        self.static = static

    def stream(self, sentences: Iterable[Sentence]) -> Iterator[np.ndarray]:
        """Yield an array (1, W, S), float32, for each sentence."""
        for words in sentences:
            ids = np.array([self.static.id_of(word) for word in words], dtype=np.int64)
            yield self.static.values[ids][None]


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
    bilms = {TRAINED: load_model(path)}
    if random_seed is not None:
        bilms[UNTRAINED] = load_model(path)
        bilms[UNTRAINED].reset_parameters(torch.Generator().manual_seed(random_seed))
    return [
        LayerSource(Embedder.load(bilm, device=device, precision=precision), label=label, **options)
        for label, bilm in bilms.items()
    ]


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


class SplitFiles(NamedTuple):
    train: Path
    dev: Path


def find_splits(data: Path, suffixes: Sequence[str] = ()) -> SplitFiles:
    """Return the files ``…train…`` and ``…dev…`` of a directory."""
    return SplitFiles(*(find_split(data, split, suffixes) for split in SplitFiles._fields))


class PosData(NamedTuple):
    train: list[TaggedSentence]
    dev: list[TaggedSentence]


def read_pos_data(data: Path, *, units: Units = "words") -> PosData:
    """Read a directory of CoNLL-U, by words with universal tags or by morphemes (columns 3, 5).

    `FormatError` if training has one tag alone.
    """
    read = read_morphemes if units == "morphemes" else read_conllu
    splits = PosData(*(list(read(path)) for path in find_splits(data, (".conllu",))))
    if len({tag for sentence in splits.train for tag in sentence.tags}) < 2:
        raise FormatError(f"{data}: all words of the training set have the same tag.")
    return splits


_TEXT, _KEYS, _INVENTORY = ".data.xml", ".gold.key.txt", "senses.tsv"
_TRAINING = "semcor"


class SenseData(NamedTuple):
    train: list[SenseSentence]
    test: list[SenseSentence]
    inventory: SenseInventory
    test_name: str  # what the names of its files begin with, such as ``semeval2007``


def read_sense_data(data: Path, test: str | None = None) -> SenseData:
    """Read a directory laid out as by Raganato et al. 2017, maybe compressed.

    ``semcor.data.xml``, ``semcor.gold.key.txt``, the same of a test set, and ``…senses.tsv``.
    """
    names = sorted(name.removesuffix(_TEXT) for name in _files(data) if name.endswith(_TEXT))
    tests = [name for name in names if name != _TRAINING]
    if not tests:
        raise FileNotFoundError(f"{data} has no test set: a NAME{_TEXT} with NAME{_KEYS}.")
    if test not in tests and (test is not None or len(tests) > 1):
        raise InputError(
            f"{data} has the test sets {', '.join(tests)}: choose one of them with --test, or let "
            "the folder have only one."
        )
    name, inventory = test or tests[0], find_sense_inventory(data)
    test_set = read_sense_corpus(data, name)  # before the training text, which is long
    return SenseData(read_sense_corpus(data), test_set, read_sense_inventory(inventory), name)


def read_sense_corpus(data: Path, name: str = _TRAINING) -> list[SenseSentence]:
    """Read the text and the keys of a name from a directory, such as those of SemCor."""
    files = _files(data)
    for file in (name + _TEXT, name + _KEYS):
        if file not in files:
            raise FileNotFoundError(f"{data} has no {file}, plain or compressed.")
    return list(read_senses(files[name + _TEXT], files[name + _KEYS]))


def find_sense_inventory(data: Path) -> Path:
    paths = [path for name, path in _files(data).items() if name.endswith(_INVENTORY)]
    if len(paths) != 1:
        raise FileNotFoundError(f"{data} needs one …{_INVENTORY}, and has {len(paths)}.")
    return paths[0]


def _files(data: Path) -> dict[str, Path]:
    """Return the files of a directory by their names without compression suffixes."""
    if not data.is_dir():
        raise FileNotFoundError(f"There is no directory {data}. Give the probe's data directory.")
    files = [path for path in sorted(data.iterdir()) if path.is_file()]
    return {path.stem if path.suffix.lower() in COMPRESSIONS else path.name: path for path in files}
