"""A trained tagger without PyTorch, and how its predictions are written.

Each LSTM layer is an engine of `elmokit.inference`, which reads sentences without padding.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, get_args

import numpy as np

from elmokit.bilm.config import FORGET_OFFSET, BiLMConfig, Direction, LSTMConfig
from elmokit.inference.device import build_engine
from elmokit.inference.engine import Engine
from elmokit.inference.layers_and_states import LSTMState
from elmokit.inference.numpy_backend import linear
from elmokit.kernels.layers import PackedLinear, fp32_empty
from elmokit.kernels.library import load_kernels
from elmokit.tasks.inputs.layer_cache import Sentence
from elmokit.tasks.inputs.settings import CHARACTER_CNN, MixPosition
from elmokit.tasks.inputs.task_bilm import TaskBiLM
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.run_dir import STATIC_WEIGHT, TaskRunConfig
from elmokit.tasks.tag_search import TagSearch
from elmokit.tasks.task import Answer, Labels, Task
from elmokit.text.alignment import Offsets, align
from elmokit.text.char_vocab import NUM_CHARS
from elmokit.vectors.static_vectors import StaticVectors
from elmokit.weights.model_files import TrainedMixes

_WITH_CRF = "tagger.CRFTagger"

Batch = tuple[Sequence[Sentence], Sequence[np.ndarray] | None]
"""Sentences, and the layers of their words, (W, L, 2D) each, if any are read."""


def can_run_frozen(task: Task[Any], config: TaskRunConfig, device: str) -> bool:
    """Tell whether a run is a tagger or a classifier of texts; others need PyTorch."""
    return (
        task.network in ("tagger.Tagger", _WITH_CRF, "classifier.BCN")
        and device == "cpu"
        and config.inputs.embeddings not in ("static_projected", "static_output")
    )


class FrozenTagger:
    """The network of a run of `pos` or `ner`.

    ``config`` is resolved, ``labels`` in the order of their ids, ``arrays`` has all parameters by
    the names of the modules; KeyError or ValueError if they are not those of such a network.
    """

    def __init__(
        self,
        config: TaskRunConfig,
        labels: Labels,
        bilm: TaskBiLM,
        static: StaticVectors | None,
        arrays: Mapping[str, np.ndarray],
    ) -> None:
        self.settings, self.static = config.inputs, static
        self._config, self._labels, self._bilm = config, labels, bilm
        self._untaken = dict(arrays)
        self._build(self._take_inputs())
        if self._untaken:
            raise ValueError(f"it also has the tensors {', '.join(sorted(self._untaken))}")

    def set_static(self, static: StaticVectors) -> None:
        self.static = static

    def make_batch(
        self, sentences: Sequence[Sentence], layers: Sequence[np.ndarray] | None
    ) -> Batch:
        return sentences, layers

    def answer(self, batches: Sequence[Batch], examples: Sequence[Any]) -> list[Answer]:
        """Return the tags of each sentence, with their probabilities."""
        (batch,) = batches
        ends = np.cumsum([len(words) for words in batch[0]])
        logits = np.split(self._logits(batch, ends), ends[:-1])
        return [self._search.answer(scores, self._transitions) for scores in logits]

    def _logits(self, batch: Batch, ends: np.ndarray) -> np.ndarray:
        """Return the scores of tags at all words, one sentence after the other: (P, Y)."""
        if ends[-1] == 0:
            return np.zeros((0, len(self._labels)), np.float32)
        rows = np.split(np.arange(ends[-1]), ends[:-1])
        x = self._inputs(*batch)
        for engine in self._engines:
            x = read_both_ways(engine, x, rows)
        if self._packed_to_tags is None:
            return linear(x, *self._to_tags)
        return self._packed_to_tags(x, fp32_empty(len(x), len(self._labels)))

    def _inputs(
        self, sentences: Sequence[Sentence], layers: Sequence[np.ndarray] | None
    ) -> np.ndarray:
        """Return what the network reads at all words, one sentence after the other: (P, X)."""
        # Each distinct word is encoded once, however often it occurs.
        words = [word for sentence in sentences for word in sentence]
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        index = np.array([numbers[word] for word in words], dtype=np.intp)
        parts = []
        if (static := self.static) is not None:
            vectors = static.values[[static.id_of(word) for word in numbers]]
            parts.append((vectors * self._static_scale)[index])
        if self.settings.characters:
            ids = self._bilm.char_vocab.encode_words(list(numbers))
            parts.append(self._engines[0].encode_tokens(ids)[index])
        if "input" in self.settings.mix_positions:
            parts.append(self._mixture("input", layers))
        return np.concatenate(parts, axis=1)

    def _mixture(self, position: MixPosition, layers: Sequence[np.ndarray] | None) -> np.ndarray:
        """Return a mixture of layers at all words: (P, 2D)."""
        assert layers is not None
        assert self._mixes is not None
        choice = self.settings.sources.layers or ""
        wanted = {"top": slice(-1, None), "layer0": slice(1)}.get(choice, slice(None))
        values = np.concatenate([each.transpose(1, 0, 2)[wanted] for each in layers], axis=1)
        number = self.settings.mix_positions.index(position)
        return self._mixes.mix(number, values.astype(np.float32, copy=False))

    def _take(self, name: str, *shape: int) -> np.ndarray:
        """Return a parameter, once. Kernels trust its shape, so it must be the expected one."""
        array = self._untaken.pop(name)
        if array.shape != shape:
            raise ValueError(f"tensor `{name}` has shape {array.shape}, expected {shape}")
        return array

    def _take_linear(self, name: str, input_dim: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
        return self._take(f"{name}.weight", dim, input_dim), self._take(f"{name}.bias", dim)

    def _take_inputs(self) -> int:
        """Take the parameters of the inputs; return how wide these are."""
        inputs, width = self.settings, 0
        self._static_scale = np.ones(1, dtype=np.float32)
        if self.static is not None:
            self._take(STATIC_WEIGHT, *self.static.values.shape)  # the same values
            width += self.static.dim
            if inputs.static_scale == "learned":
                self._static_scale = self._take("inputs.static.gammas", 1)
        self._characters: dict[str, np.ndarray] = {}
        if inputs.characters:
            (filter_width, count), dim = CHARACTER_CNN.filters[0], CHARACTER_CNN.embedding_dim
            for name, shape in (
                ("char_embedding.weight", (NUM_CHARS, dim)),
                ("convolutions.0.weight", (count, dim, filter_width)),
                ("convolutions.0.bias", (count,)),
            ):
                array = self._take(f"inputs.characters.{name}", *shape)
                self._characters[f"token_encoder.{name}"] = array
            width += count
        self._mixes = None
        if inputs.has_layers:
            assert inputs.layer_norm is not None
            is_whole = inputs.sources.layers in ("mix", "average")
            num_layers = self._bilm.num_layers if is_whole else 1
            mixes = [f"inputs.mixes.scalar_mixes.{n}" for n in range(len(inputs.mix_positions))]
            weights = [self._take(f"{mix}.mix_weights", num_layers) for mix in mixes]
            gammas = [self._take(f"{mix}.gamma") for mix in mixes]
            self._mixes = TrainedMixes(
                mix_weights=np.stack(weights), gammas=np.stack(gammas),
                layer_norm=inputs.layer_norm,
            )  # fmt: skip
            width += self._bilm.dim * ("input" in inputs.mix_positions)
        return width

    def _build(self, width: int) -> None:
        """Take and pack the parameters behind the inputs, which are this wide."""
        self._engines: list[Engine] = []
        for number, dim in enumerate(self._config.hidden_dims):
            layer, is_first = f"encoder.layers.{number}", number == 0
            self._engines.append(self._take_layer(layer, width, dim, reads_characters=is_first))
            width = 2 * dim
        num_tags, kernels = len(self._labels), load_kernels()
        weight, bias = self._to_tags = self._take_linear("to_tags", width, num_tags)
        self._packed_to_tags = None
        if kernels is not None:
            self._packed_to_tags = PackedLinear(kernels, weight, bias, "fp32")
        has_crf = find_task(self._config.task).network == _WITH_CRF
        self._transitions = self._take("crf.transitions", num_tags, num_tags) if has_crf else None
        self._search = TagSearch(self._labels, "bioul" if has_crf else None)

    def _take_layer(
        self, layer: str, input_dim: int, dim: int, *, reads_characters: bool = False
    ) -> Engine:
        """Return a layer of biLSTM; the first has the character CNN for its token layer."""
        has_characters = reads_characters and self.settings.characters
        lstm = LSTMConfig(
            num_layers=1, cell_dim=dim, projection_dim=dim, cell_clip=None, projection_clip=None,
            skip_connections=False,
        )  # fmt: skip
        config = BiLMConfig(
            char_vocab=self._bilm.char_vocab.config, lstm=lstm,
            char_cnn=CHARACTER_CNN if has_characters else None,
            num_words=None if has_characters else 0,
        )  # fmt: skip
        arrays = {"token_encoder.embedding.weight": np.zeros((1, dim), np.float32)}
        if has_characters:
            arrays = dict(self._characters)
        # PyTorch's LSTM has its gates in the order of a biLM's.
        for stack, direction in (("forward_layers", ""), ("backward_layers", "_reverse")):
            name = f"{layer}.{{}}_l0{direction}".format
            bias = self._take(name("bias_ih"), 4 * dim) + self._take(name("bias_hh"), 4 * dim)
            bias[dim : 2 * dim] -= np.float32(FORGET_OFFSET)  # a biLM adds it when it runs
            arrays[f"{stack}.0.bias"] = bias
            arrays[f"{stack}.0.input_weight"] = self._take(name("weight_ih"), 4 * dim, input_dim)
            arrays[f"{stack}.0.recurrent_weight"] = self._take(name("weight_hh"), 4 * dim, dim)
        return build_engine(config, arrays, precision="fp32", device="cpu")


def read_both_ways(engine: Engine, x: np.ndarray, rows: Sequence[np.ndarray]) -> np.ndarray:
    """Run one layer in both directions: (P, X) -> (P, 2H)."""
    dim = engine.config.lstm.cell_dim
    state = LSTMState.zeros(engine.config.lstm, len(rows))
    first = np.array([row[0] if len(row) else 0 for row in rows])
    out = fp32_empty(len(x), 2 * dim)
    for half, direction in enumerate(get_args(Direction)):
        columns = slice(half * dim, (half + 1) * dim)

        def keep(
            values: np.ndarray, sentence: np.ndarray, position: np.ndarray, to: slice = columns
        ) -> None:
            out[first[sentence] + position, to] = values

        engine.read(direction, x, rows, state.direction(direction), on_top=keep)
    return out


Mark = tuple[int, int, str, str]
"""``[start, end)`` of a span in words, and what is put before and after it."""


class WrittenWords:
    """The words that a task read, and the raw text that they are from, or the words joined.

    ``offsets`` are those of `align`, None if the words cannot be found in the text. Characters
    ``without`` are marks of the text, which belong to no word.
    """

    def __init__(self, words: Sequence[str], text: str | None = None, *, without: str = "") -> None:
        self.words = words
        if text is None:
            self.text, self.offsets = joined(words)
            return
        self.text = text
        places = [i for i, character in enumerate(text) if character not in without]
        self.offsets = align(words, "".join(text[i] for i in places))
        if self.offsets is not None and without:
            ends = (*places, len(text))
            self.offsets = tuple(
                (ends[start], ends[end - 1] + 1 if start < end else ends[start])
                for start, end in self.offsets
            )

    def as_json(self) -> list[dict[str, Any]]:
        """Return each word's ``text``, as the model read it, and its place in characters."""
        return [{"text": word, **self.place(at, at + 1)} for at, word in enumerate(self.words)]

    def span(self, start: int, end: int) -> dict[str, Any]:
        """Return the text and place of a span of words, in characters and in words."""
        place = self.place(start, end)
        text = " ".join(self.words[start:end])
        if self.offsets is not None:
            text = self.text[place["start"] : place["end"]]
        return {"text": text, **place, "token_start": start, "token_end": end}

    def place(self, start: int, end: int) -> dict[str, int | None]:
        if self.offsets is None:
            return {"start": None, "end": None}
        return {"start": self.offsets[start][0], "end": self.offsets[end - 1][1]}

    def each(self) -> list[str]:
        """Return the words as they are written, or as they were read if they share characters."""
        if self.offsets is None:
            return list(self.words)
        pairs = [(a, b) for a, b in pairwise(self.offsets) if b[0] < a[1] or a == b]
        shared = {place for pair in pairs for place in pair}
        return [
            self.text[start:end] if start < end and (start, end) not in shared else word
            for word, (start, end) in zip(self.words, self.offsets, strict=True)
        ]

    def marked(self, marks: Iterable[Mark]) -> str:
        """Return the text with marks around spans, which may contain one another."""
        text, offsets = self.text, self.offsets
        if offsets is None:
            text, offsets = joined(self.words)
        pieces: list[tuple[tuple[int, ...], str]] = []
        for start, end, opening, closing in marks:
            first, last = offsets[start][0], offsets[end - 1][1]
            # At one place, what ends comes before what begins; inner spans end first and begin
            # last. An empty span closes after it opens.
            pieces.append(((first, 1, -last, -end), opening))
            pieces.append(((last, 0, -first, -start) if first < last else (first, 2), closing))
        result, at = [], 0
        for (place, *_), piece in sorted(pieces, key=lambda piece: piece[0]):
            result += text[at:place], piece
            at = place
        return "".join((*result, text[at:]))


def joined(words: Sequence[str]) -> tuple[str, Offsets]:
    """Return words joined by spaces, and where they are in that text."""
    ends = accumulate(len(word) + 1 for word in words)
    offsets = tuple((end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True))
    return " ".join(words), offsets
