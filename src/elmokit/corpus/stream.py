"""The endless (or counted) stream of training windows over a shard set, with its resume state.

Every rank packs the same global window and keeps its own rows, so that all ranks together see the
window of a single process. Each window comes with a small JSON state; a stream made from it
continues exactly as if it had never stopped.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from elmokit.corpus.order import SentenceOrder, Shuffle
from elmokit.corpus.shard_file import merge_shards
from elmokit.corpus.shards import ShardSet
from elmokit.corpus.windows import WindowBatch, WordTable, sentence_streams
from elmokit.errors import InputError
from elmokit.files.changes import changes
from elmokit.text.char_vocab import CharVocab
from elmokit.text.word_vocab import WordVocab

_STATE_VERSION = 3
"""Of the state and the order of sentences (`elmokit.corpus.order`)."""


class WindowStream:
    """Windows of B rows and T steps, packed as in the original.

    Each row is filled up to T before the next row takes a sentence from the common order; a
    sentence that is cut continues in the same row of the next window. After ``num_epochs`` passes
    the incomplete last window is dropped, with the rest of its rows' sentences. Memory: a group of
    shards (`elmokit.corpus.order.SHARDS_TOGETHER`) and the unfinished sentences.

    Args:
        shards: The sentences.
        word_vocab: For word ids of inputs and targets.
        char_vocab: For character rows of inputs.
        batch_size: B, the rows of all ranks together.
        num_steps: T.
        seed: Of the order and of restarts.
        shuffle: See `elmokit.corpus.order.Shuffle`.
        rank: Yields the rows ``[rank * B / world_size, (rank + 1) * B / world_size)``.
        world_size: Number of ranks.
        num_epochs: Passes over the shards; None: endless.
        restart_share: Share of the rows, chosen by seed and window, that begin each window with a
            new sentence and skip the rest of their last one (`WindowBatch.restarts`).
        state: Continue after the window that this state came with.

    Raises:
        ValueError: if the corpus has fewer targets than one window, B is not divisible by the
            number of ranks, or ``state`` comes from other data or settings.
    """

    def __init__(
        self,
        shards: ShardSet,
        word_vocab: WordVocab,
        char_vocab: CharVocab,
        *,
        batch_size: int,
        num_steps: int,
        seed: int = 0,
        shuffle: Shuffle = "sentences",
        rank: int = 0,
        world_size: int = 1,
        num_epochs: int | None = None,
        restart_share: float = 0.0,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        for name, value in (("batch_size", batch_size), ("num_steps", num_steps)):
            if value < 1:
                raise ValueError(f"`{name}` must be at least 1, got {value}.")
        if seed < 0:
            raise ValueError(f"`seed` must not be negative, got {seed}.")
        if num_epochs is not None and num_epochs < 1:
            raise ValueError(f"`num_epochs` must be at least 1 or None, got {num_epochs}.")
        if not 0 <= restart_share <= 1:
            raise ValueError(f"`restart_share` must be between 0 and 1, got {restart_share}.")
        if not 0 <= rank < world_size:
            raise ValueError(f"`rank` must be in [0, {world_size}), got {rank}.")
        if batch_size % world_size:
            raise ValueError(
                f"`batch_size` counts the rows of all ranks together and must be divisible by "
                f"world_size, got {batch_size} rows for {world_size} ranks."
            )
        if shards.num_targets < batch_size * num_steps:
            raise InputError(
                f"the corpus is smaller than one window: it has {shards.num_targets} targets "
                f"({shards.num_words} words in {shards.num_sentences} sentences), a window takes "
                f"batch_size x num_steps = {batch_size} x {num_steps} = {batch_size * num_steps}. "
                f"Use a smaller batch_size or num_steps, or more text."
            )
        self.shards, self.word_vocab, self.char_vocab = shards, word_vocab, char_vocab
        self.batch_size, self.num_steps, self.num_epochs = batch_size, num_steps, num_epochs
        self.order = SentenceOrder(shards, seed=seed, shuffle=shuffle)
        self.seed, self.restart_share = seed, restart_share
        self.rows = slice(rank * batch_size // world_size, (rank + 1) * batch_size // world_size)
        self.fingerprint = {
            "shards": shards.fingerprint,
            "batch_size": batch_size,
            "num_steps": num_steps,
            "seed": seed,
            "shuffle": shuffle,
            "vocabulary": word_vocab.sha256,
            "characters": asdict(char_vocab.config),
        }
        if state is not None:
            self._check_state(state)
        self._state = state

    @property
    def targets_per_window(self) -> int:
        """Predictions of one direction in one window, all ranks together: B * T."""
        return self.batch_size * self.num_steps

    @property
    def targets_per_epoch(self) -> int:
        """Predictions of one direction in one pass over the corpus."""
        return self.shards.num_targets

    @property
    def windows_per_epoch(self) -> int:
        """Whole windows of one pass; a stream with ``num_epochs`` may yield a few fewer."""
        return self.targets_per_epoch // self.targets_per_window

    def __iter__(self) -> Iterator[tuple[WindowBatch, dict[str, Any]]]:
        """Yield (window, state after that window).

        The state has ``windows`` and ``targets`` (of one direction) so far, over all ranks, and
        ``epoch``, the pass of the next new sentence; the rest is private. All ranks have equal
        states.
        """
        packer = _Packer(self)
        while (batch := packer.next_window()) is not None:
            yield batch, packer.state()
        if packer.windows == 0:
            raise InputError(
                f"no window of {self.batch_size} x {self.num_steps} could be filled: "
                f"{self.shards.num_sentences} sentences do not reach every row. Use a smaller "
                f"batch_size or num_steps, or more text."
            )

    def _check_state(self, state: Mapping[str, Any]) -> None:
        if state.get("version") != _STATE_VERSION:
            raise InputError(
                f"the stream state has version {state.get('version')!r}, this elmokit reads "
                f"version {_STATE_VERSION}. Start a new run."
            )
        differences = changes(state.get("fingerprint", {}), self.fingerprint)
        if differences:
            raise InputError(
                "the stream state comes from other data or settings: "
                f"{'; '.join(map(str, differences))}. Resume with the data and settings of the "
                "first run, or start a new run."
            )


def with_more_rows(state: Mapping[str, Any], batch_size: int) -> dict[str, Any]:
    """Return a state from which a stream continues with more rows, added at the end."""
    rows = state["rows"]
    if batch_size < len(rows):
        raise ValueError(f"a stream of {len(rows)} rows cannot continue with {batch_size}.")
    return {
        **state,
        "fingerprint": {**state["fingerprint"], "batch_size": batch_size},
        "rows": [*rows, *[None] * (batch_size - len(rows))],
    }


class _Packer:
    """Fills windows; holds all mutable state of a stream.

    ``streams`` (2, N) holds, as types of ``table``, unfinished sentences of earlier shards and then
    the sentences of the loaded ones. Row i continues at ``position[i]``; its sentence ends at
    ``last[i]`` (both in ``streams``; equal when the sentence is used up).
    """

    def __init__(self, stream: WindowStream) -> None:
        self.stream = stream
        num_rows, num_steps = stream.batch_size, stream.num_steps
        self.windows = self.num_targets = self.epoch = 0
        self.group_position = 0  # in the epoch's groups of shards
        self.sentence_position = 0  # of the next sentence in the group's order
        self.loaded: tuple[int, ...] = ()  # shards in memory
        self.firsts = np.zeros(0, dtype=np.int64)  # number of the first sentence of each
        self.order: np.ndarray | None = None  # of the group's sentences; None before it is opened
        self.table = self._build_table([])
        self.streams = np.empty((2, 0), dtype=np.int32)
        self.begins = np.empty(0, dtype=np.int64)
        self.position = [0] * num_rows
        self.last = [0] * num_rows
        self.source: list[tuple[int, int]] = [(0, 0)] * num_rows  # (shard, sentence)
        self.inputs = np.zeros((2, num_rows, num_steps), dtype=np.int32)
        self.targets = np.zeros((2, num_rows, num_steps), dtype=np.int32)
        if stream._state is not None:
            self._restore(stream._state)

    def next_window(self) -> WindowBatch | None:
        """Fill the next window; None when the last epoch cannot fill it."""
        num_steps = self.stream.num_steps
        inputs, targets = self.inputs, self.targets
        position, last = self.position, self.last
        inputs.fill(0)  # type 0 is in every table: `_load` also translates cells not yet filled
        targets.fill(0)
        restarts = self._restarts() if self.stream.restart_share > 0 else None
        for row in [] if restarts is None else np.flatnonzero(restarts):
            position[row] = last[row]
        for row in range(self.stream.batch_size):
            filled = 0
            while filled < num_steps:
                if position[row] == last[row] and not self._next_sentence(row):
                    return None
                start = position[row]
                stop = min(last[row], start + num_steps - filled)
                until = filled + stop - start
                inputs[:, row, filled:until] = self.streams[:, start:stop]
                targets[:, row, filled:until] = self.streams[:, start + 1 : stop + 1]
                position[row] = stop
                filled = until
        self.windows += 1
        self.num_targets += self.stream.targets_per_window
        rows = self.stream.rows
        window = self.table.window(inputs[:, rows], targets[:, rows])
        return window if restarts is None else replace(window, restarts=restarts[rows])

    def _restarts(self) -> np.ndarray:
        """Choose the rows that begin the next window with a new sentence: bool (B,)."""
        num_rows = self.stream.batch_size
        draw = np.random.default_rng([self.stream.seed, self.windows])
        count = int(self.stream.restart_share * num_rows + draw.random())  # on average the share
        restarts = np.zeros(num_rows, dtype=np.bool_)
        restarts[draw.permutation(num_rows)[:count]] = True
        return restarts

    def state(self) -> dict[str, Any]:
        rows = [
            None if position == last else [*source, last - position]
            for position, last, source in zip(self.position, self.last, self.source, strict=True)
        ]
        return {
            "version": _STATE_VERSION,
            "fingerprint": self.stream.fingerprint,
            "windows": self.windows,
            "targets": self.num_targets,
            "epoch": self.epoch,
            "group_position": self.group_position,
            "sentence_position": self.sentence_position,
            "rows": rows,  # (shard, sentence, steps left)
        }

    def _next_sentence(self, row: int) -> bool:
        """Give a row the next sentence; False after the last epoch."""
        if self.order is None and not self._open_group():
            return False
        assert self.order is not None
        sentence = int(self.order[self.sentence_position])
        self.position[row] = int(self.begins[sentence])
        self.last[row] = int(self.begins[sentence + 1]) - 1
        shard = int(np.searchsorted(self.firsts, sentence, side="right")) - 1
        self.source[row] = (self.loaded[shard], sentence - int(self.firsts[shard]))
        self.sentence_position += 1
        if self.sentence_position == len(self.order):
            self._pass_group()
        return True

    def _pass_group(self) -> None:
        self.order = None  # opened when its first sentence is needed
        self.sentence_position = 0
        self.group_position += 1
        if self.group_position == self.stream.order.num_groups:
            self.group_position = 0
            self.epoch += 1

    def _open_group(self) -> bool:
        """Load the shards at the current position; False if all epochs are done."""
        num_epochs = self.stream.num_epochs
        if num_epochs is not None and self.epoch >= num_epochs:
            return False
        shards = self.stream.order.groups(self.epoch)[self.group_position]
        if shards != self.loaded:
            self._load(shards)
        self.order = self.stream.order.sentences(self.epoch, self.group_position)
        return True

    def _load(self, shards: tuple[int, ...]) -> None:
        """Load other shards, keeping what rows and window still need of the old ones.

        Types in use are turned into words, the old shards dropped, and the words turned into types
        of the new table, so that only one group is in memory.
        """
        spans = [
            (position, last + 1 if position < last else position)
            for position, last in zip(self.position, self.last, strict=True)
        ]
        rest = np.concatenate([self.streams[:, start:stop] for start, stop in spans], axis=1)
        begin = 0
        for row, (start, stop) in enumerate(spans):
            self.position[row] = begin
            self.last[row] = begin + max(0, stop - start - 1)
            begin += stop - start
        in_flight = np.unique(np.concatenate([rest, self.inputs, self.targets], axis=None))
        words = [self.table.words[index] for index in in_flight.tolist()]
        new_type = np.zeros(len(self.table), dtype=np.int32)
        self.table = self._build_table([])  # drop the old shards before the new ones are read
        self.streams = self.streams[:, :0].copy()

        loaded = merge_shards([self.stream.shards.load(shard) for shard in shards])
        counts = [self.stream.shards.entries[shard].num_sentences for shard in shards]
        self.firsts = np.cumsum([0, *counts[:-1]])
        self.table = self._build_table([*loaded.words, *words])
        new_type[in_flight] = self.table.types(words)
        streams, self.begins = sentence_streams(
            self.table.types(loaded.words)[loaded.tokens], loaded.offsets
        )
        self.begins += rest.shape[1]
        self.streams = np.concatenate([new_type[rest], streams], axis=1)
        self.inputs[...] = new_type[self.inputs]
        self.targets[...] = new_type[self.targets]
        self.loaded = shards

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.windows = state["windows"]
        self.num_targets = state["targets"]
        self.epoch = state["epoch"]
        self.group_position = state["group_position"]
        self.sentence_position = state["sentence_position"]
        unfinished: dict[int, list[int]] = {}  # rows of each shard
        for row, entry in enumerate(state["rows"]):
            if entry is not None:
                unfinished.setdefault(entry[0], []).append(row)
        sentences: dict[int, list[str]] = {}  # of each row
        for shard, rows in unfinished.items():
            loaded = self.stream.shards.load(shard)
            for row in rows:
                sentences[row] = loaded.sentence(state["rows"][row][1])
        words = [word for sentence in sentences.values() for word in sentence]
        self.table = self._build_table(words)
        offsets = np.cumsum([0, *map(len, sentences.values())])
        self.streams, begins = sentence_streams(self.table.types(words), offsets)
        for index, row in enumerate(sentences):
            shard, sentence, steps_left = state["rows"][row]
            self.source[row] = (shard, sentence)
            self.last[row] = int(begins[index + 1]) - 1
            self.position[row] = self.last[row] - steps_left

    def _build_table(self, words: Iterable[str]) -> WordTable:
        return WordTable(
            words, char_vocab=self.stream.char_vocab, word_vocab=self.stream.word_vocab
        )
