"""Training windows: the order of sentences in an epoch, and packing them into rows.

The order is a function of seed and epoch. Packing is that of the original.

Each row is filled up to T before the next row takes a sentence from the common order; a sentence
that is cut continues in the same row of the next window.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np

from elmokit.corpus.shards import ShardSet, merge_shards
from elmokit.shapes import Bool, Int, UInt16
from elmokit.text.char_vocab import CharVocab
from elmokit.text.word_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD, WordVocab

BEGIN_TYPE = 0
"""Types of ``<S>`` and ``</S>`` in every `WordTable`."""
END_TYPE = 1
_WORDS_PER_CHUNK = 8192  # keeps the encoder's temporary arrays small


@dataclass(frozen=True)
class WindowBatch:
    """What both directions read and predict. U counts distinct input words."""

    char_ids: UInt16[np.ndarray, "U C"]
    """Rows of the distinct input words, in the order of their first use."""
    word_ids: Int[np.ndarray, " U"]
    """Of the same words, for models that read words."""
    forward_inputs: Int[np.ndarray, "B T"]
    """Indices into the distinct words."""
    backward_inputs: Int[np.ndarray, "B T"]
    """Likewise, the end of the sentence first."""
    forward_targets: Int[np.ndarray, "B T"]
    """Word ids."""
    backward_targets: Int[np.ndarray, "B T"]
    restarts: Bool[np.ndarray, " B"] | None = None
    """Rows that begin a new sentence from the zero state; None: all rows continue."""

    @property
    def num_targets(self) -> int:
        return self.forward_targets.size


class WordTable:
    """Distinct words with their ids, ready for packing: type 0 is ``<S>``, type 1 is ``</S>``."""

    def __init__(
        self, words: Iterable[str], *, char_vocab: CharVocab, word_vocab: WordVocab
    ) -> None:
        self._type_of_word = {SENTENCE_BEGIN_WORD: BEGIN_TYPE, SENTENCE_END_WORD: END_TYPE}
        for word in words:
            self._type_of_word.setdefault(word, len(self._type_of_word))
        self.words = list(self._type_of_word)
        num_types = len(self.words)
        self.char_ids = np.empty((num_types, char_vocab.config.max_characters), dtype=np.uint16)
        self.word_ids = np.empty(num_types, dtype=np.int64)
        for start in range(0, num_types, _WORDS_PER_CHUNK):
            chunk = self.words[start : start + _WORDS_PER_CHUNK]
            self.char_ids[start : start + len(chunk)] = char_vocab.encode_words(chunk)
            self.word_ids[start : start + len(chunk)] = word_vocab.encode(chunk)
        self._slot_of_type = np.empty(num_types, dtype=np.int64)  # scratch of `window`

    def __len__(self) -> int:
        return len(self.words)

    def types(self, words: Sequence[str]) -> np.ndarray:
        return np.fromiter(map(self._type_of_word.__getitem__, words), np.int32, count=len(words))

    def window(
        self, inputs: Int[np.ndarray, "2 B T"], targets: Int[np.ndarray, "2 B T"]
    ) -> WindowBatch:
        """Make a window of types (index 0: forward, 1: backward), independent of type numbers."""
        # The char CNN computes each distinct word once, so a window holds them once, in the order
        # of their first use: which types have which numbers must not show in the result.
        types = inputs.reshape(-1)
        steps = np.arange(types.size)
        self._slot_of_type[types[::-1]] = steps[::-1]  # first uses are written last
        distinct = types[self._slot_of_type[types] == steps]  # (U,)
        self._slot_of_type[distinct] = np.arange(distinct.size)
        slots = self._slot_of_type[inputs]
        target_ids = self.word_ids[targets]
        return WindowBatch(
            char_ids=self.char_ids[distinct],
            word_ids=self.word_ids[distinct],
            forward_inputs=slots[0],
            backward_inputs=slots[1],
            forward_targets=target_ids[0],
            backward_targets=target_ids[1],
        )


def sentence_streams(
    types: Int[np.ndarray, " n"], offsets: Int[np.ndarray, " S1"]
) -> tuple[Int[np.ndarray, "2 n2"], Int[np.ndarray, " S1"]]:
    """Lay sentences out as ``<S> w1 ... wn </S>`` forward and ``</S> wn ... w1 <S>`` backward.

    In a step, element k is the input and element k + 1 the target. ``offsets`` has the beginning of
    each sentence in ``types``, and the end. Returns the two streams, int32 (2, n + 2 S), and the
    offsets of the sentences in them (S + 1,).
    """
    lengths = np.diff(offsets)
    num_sentences = lengths.size
    # two marks more per sentence move sentence k by 2 k places
    begins = offsets + 2 * np.arange(num_sentences + 1)
    streams = np.empty((2, begins[-1]), dtype=np.int32)
    streams[0, begins[:-1]] = streams[1, begins[1:] - 1] = BEGIN_TYPE
    streams[1, begins[:-1]] = streams[0, begins[1:] - 1] = END_TYPE
    positions = np.arange(types.size) + np.repeat(2 * np.arange(num_sentences) + 1, lengths)
    streams[0, positions] = types
    # word k of a sentence is at begin + 1 + k forward and at end - 2 - k backward
    streams[1, np.repeat(begins[:-1] + begins[1:] - 1, lengths) - positions] = types
    return streams, begins


Shuffle = Literal["sentences", "none"]
"""``sentences`` reshuffles groups of shards, and the sentences within each, every epoch; ``none``
keeps the order of the text."""
SHARDS_TOGETHER = 8
"""Most shards whose sentences are shuffled together: a shard is a stretch of the text, so one at a
time would mean long runs of similar text."""


class SentenceOrder:
    def __init__(self, shards: ShardSet, *, seed: int, shuffle: Shuffle) -> None:
        self._shards = shards
        self.seed = seed
        self.shuffle: Shuffle = shuffle
        together = 1 if shuffle == "none" else SHARDS_TOGETHER
        self.num_groups = -(-len(shards) // together)

    def groups(self, epoch: int) -> list[tuple[int, ...]]:
        """Return an epoch's groups of shards.

        A group is every ``num_groups``-th shard, so that all have a similar mixture of texts.
        """
        num_shards = len(self._shards)
        firsts = np.arange(self.num_groups)
        if self.shuffle != "none":
            # the third number differs from those of the sentence orders, which are smaller
            rng = np.random.default_rng((self.seed, epoch, num_shards))
            firsts = rng.permutation(self.num_groups)
        return [tuple(range(first, num_shards, self.num_groups)) for first in firsts.tolist()]

    def sentences(self, epoch: int, group: int) -> np.ndarray:
        shards = self.groups(epoch)[group]
        num_sentences = sum(self._shards.entries[shard].num_sentences for shard in shards)
        if self.shuffle == "none":
            return np.arange(num_sentences)
        return np.random.default_rng((self.seed, epoch, group)).permutation(num_sentences)


@dataclass(slots=True)
class _Row:
    """What a row of the windows reads."""

    stream: np.ndarray
    """A sentence in both directions, as types: int32 (2, n)."""
    next: int = 0
    """Element at which the row goes on."""
    source: tuple[int, int] = (0, 0)
    """Shard and sentence."""

    @property
    def steps_left(self) -> int:
        return self.stream.shape[1] - 1 - self.next


class RowPacker:
    """Fills windows of B rows and T steps; `position` says where it is, `restore` goes there."""

    def __init__(
        self,
        shards: ShardSet,
        order: SentenceOrder,
        build_table: Callable[[Iterable[str]], WordTable],
        *,
        num_rows: int,
        num_steps: int,
    ) -> None:
        self.shards, self.order = shards, order
        self.epoch = 0
        self.group_position = 0  # in the epoch's groups of shards
        self.sentence_position = 0  # of the next sentence in the group's order
        self.loaded: tuple[int, ...] = ()  # shards in memory
        self.firsts = np.zeros(0, dtype=np.int64)  # number of the first sentence of each
        self.sentences: np.ndarray | None = None  # the group's order; None before it is opened
        self.build_table, self.table = build_table, build_table([])
        self.streams = np.empty((2, 0), dtype=np.int32)  # sentences of the loaded shards
        self.begins = np.empty(0, dtype=np.int64)  # of each in ``streams``
        self.rows = [_Row(np.zeros((2, 1), dtype=np.int32)) for _ in range(num_rows)]
        self.inputs = np.zeros((2, num_rows, num_steps), dtype=np.int32)
        self.targets = np.zeros((2, num_rows, num_steps), dtype=np.int32)

    def next_window(self, rows: slice) -> WindowBatch:
        """Fill the next window and return these rows."""
        inputs, targets = self.inputs, self.targets
        inputs.fill(0)  # type 0 is in every table: `_load` also translates cells not yet filled
        targets.fill(0)
        num_steps = inputs.shape[2]
        for number, row in enumerate(self.rows):
            # a short sentence leaves room for the next one; a long one is cut and goes on in the
            # same row of the next window, so that its LSTM state is there
            filled = 0
            while filled < num_steps:
                if row.steps_left == 0:
                    self._next_sentence(row)
                start, until = row.next, filled + min(row.steps_left, num_steps - filled)
                row.next += until - filled
                # element k of a stream is the input of step k and the target of step k - 1
                inputs[:, number, filled:until] = row.stream[:, start : row.next]
                targets[:, number, filled:until] = row.stream[:, start + 1 : row.next + 1]
                filled = until
        return self.table.window(inputs[:, rows], targets[:, rows])

    def skip_rest(self, rows: Iterable[int]) -> None:
        for number in rows:
            self.rows[number].next += self.rows[number].steps_left

    def position(self) -> dict[str, Any]:
        """Return where the next window begins, as JSON; ``rows``: (shard, sentence, steps left)."""
        return {
            "epoch": self.epoch,
            "group_position": self.group_position,
            "sentence_position": self.sentence_position,
            "rows": [
                [*row.source, row.steps_left] if row.steps_left else None for row in self.rows
            ],
        }

    def restore(self, position: Mapping[str, Any]) -> None:
        """Go to a `position` of the same shards and order; before any window."""
        self.epoch = position["epoch"]
        self.group_position = position["group_position"]
        self.sentence_position = position["sentence_position"]
        # Only the sentences that were cut are loaded, each shard once; the group of shards itself
        # is opened when the first row needs a new sentence.
        cut = {row: entry for row, entry in enumerate(position["rows"]) if entry is not None}
        words: dict[int, list[str]] = {}
        for shard in {shard for shard, _, _ in cut.values()}:
            loaded = self.shards.load(shard)
            words |= {
                row: loaded.sentence(entry[1]) for row, entry in cut.items() if entry[0] == shard
            }
        self.table = self.build_table(chain.from_iterable(words.values()))
        for row, (shard, sentence, steps_left) in cut.items():
            types = self.table.types(words[row])
            stream, _ = sentence_streams(types, np.array([0, len(types)]))
            self.rows[row] = _Row(stream, stream.shape[1] - 1 - steps_left, (shard, sentence))

    def _next_sentence(self, row: _Row) -> None:
        if self.sentences is None:
            shards = self.order.groups(self.epoch)[self.group_position]
            if shards != self.loaded:
                self._load(shards)
            self.sentences = self.order.sentences(self.epoch, self.group_position)
        # sentences are numbered across the loaded shards
        sentence = int(self.sentences[self.sentence_position])
        row.next, row.stream = 0, self.streams[:, self.begins[sentence] : self.begins[sentence + 1]]
        shard = int(np.searchsorted(self.firsts, sentence, side="right")) - 1
        row.source = (self.loaded[shard], sentence - int(self.firsts[shard]))
        self.sentence_position += 1
        if self.sentence_position == len(self.sentences):
            # the next group is opened when its first sentence is needed
            self.sentences, self.sentence_position = None, 0
            self.group_position += 1
            if self.group_position == self.order.num_groups:
                self.epoch, self.group_position = self.epoch + 1, 0

    def _load(self, shards: tuple[int, ...]) -> None:
        """Load other shards, keeping what rows and window still need of the old ones.

        Types are numbers of a table only, so those in use are turned into words and then into types
        of the new table. The old shards are dropped first: only one group is in memory. The window
        may be half filled when a row needs a sentence of the next group.
        """
        for row in self.rows:
            row.next, row.stream = 0, row.stream[:, row.next :].copy()
        in_flight = [self.inputs, self.targets, *(row.stream for row in self.rows)]
        old_types = np.unique(np.concatenate(in_flight, axis=None))
        words = [self.table.words[index] for index in old_types.tolist()]
        new_type = np.zeros(len(self.table), dtype=np.int32)
        self.table, self.streams = self.build_table([]), self.streams[:, :0].copy()

        loaded = merge_shards([self.shards.load(shard) for shard in shards])
        counts = [self.shards.entries[shard].num_sentences for shard in shards]
        self.firsts = np.cumsum([0, *counts[:-1]])
        self.table = self.build_table([*loaded.words, *words])
        new_type[old_types] = self.table.types(words)
        for types in in_flight:
            types[...] = new_type[types]
        self.streams, self.begins = sentence_streams(
            self.table.types(loaded.words)[loaded.tokens], loaded.offsets
        )
        self.loaded = shards
