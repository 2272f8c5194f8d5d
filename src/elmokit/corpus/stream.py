"""The stream of training windows over a shard set, with its resume state.

Every rank packs the same global window and keeps its own rows, so that all ranks together see the
window of a single process. A stream made from a window's state continues as if it had never
stopped.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from elmokit.corpus.order_and_packing import (
    RowPacker,
    SentenceOrder,
    Shuffle,
    WindowBatch,
    WordTable,
)
from elmokit.corpus.shards import ShardSet
from elmokit.errors import InputError
from elmokit.jobs.identity import changes
from elmokit.text.char_vocab import CharVocab
from elmokit.text.word_vocab import WordVocab

_ADVICE = "Give more text, or a smaller train.batch_size or train.unroll_steps."
_STATE_VERSION = 3
"""Of the state and the order of sentences (`elmokit.corpus.order_and_packing`)."""


class WindowStream:
    """Windows of B rows and T steps without end, packed as in the original.

    ``batch_size`` (B) counts the rows of all ranks; ``num_steps`` is T. ``restart_share`` of the
    rows, chosen by seed and window, begin each window with a new sentence and skip the rest of
    their last one. ``state`` continues after the window that it came with.
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
        restart_share: float = 0.0,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        assert batch_size % world_size == 0
        if shards.num_targets < batch_size * num_steps:
            raise InputError(
                f"the corpus is smaller than one window: {shards.num_targets} targets (words "
                f"and sentence ends), a window takes {batch_size} rows x {num_steps}. {_ADVICE}"
            )
        self.shards, self.word_vocab, self.char_vocab = shards, word_vocab, char_vocab
        self.batch_size, self.num_steps = batch_size, num_steps
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

    def __iter__(self) -> Iterator[tuple[WindowBatch, dict[str, Any]]]:
        """Yield (window, state after that window); all ranks have equal states."""
        vocabs = {"word_vocab": self.word_vocab, "char_vocab": self.char_vocab}
        packer = RowPacker(
            self.shards, self.order, partial(WordTable, **vocabs),
            num_rows=self.batch_size, num_steps=self.num_steps,
        )  # fmt: skip
        windows = targets = 0
        if self._state is not None:
            windows, targets = self._state["windows"], self._state["targets"]
            packer.restore(self._state)
        while True:
            # drawn from the number of the window, so that a resumed stream draws the same
            restarts = self._restarts(windows) if self.restart_share > 0 else None
            if restarts is not None:
                packer.skip_rest(np.flatnonzero(restarts).tolist())
            window = packer.next_window(self.rows)
            if restarts is not None:
                window = replace(window, restarts=restarts[self.rows])
            windows += 1
            targets += self.batch_size * self.num_steps
            progress = {"windows": windows, "targets": targets, **packer.position()}
            yield window, {"version": _STATE_VERSION, "fingerprint": self.fingerprint, **progress}

    def _restarts(self, window: int) -> np.ndarray:
        """Choose the rows that begin a window with a new sentence: bool (B,)."""
        draw = np.random.default_rng([self.seed, window])
        count = int(self.restart_share * self.batch_size + draw.random())  # on average the share
        restarts = np.zeros(self.batch_size, dtype=np.bool_)
        restarts[draw.permutation(self.batch_size)[:count]] = True
        return restarts

    def _check_state(self, state: Mapping[str, Any]) -> None:
        if state.get("version") != _STATE_VERSION:
            raise InputError(
                f"the stream state has version {state.get('version')!r}, this elmokit reads "
                f"version {_STATE_VERSION}. Start a new run."
            )
        if differences := changes(state.get("fingerprint", {}), self.fingerprint):
            raise InputError(
                "the shards, or how they are read, are not those that the run began with: "
                f"{'; '.join(map(str, differences))}. Restore them."
            )
