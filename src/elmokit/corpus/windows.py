"""Training windows: B rows of T packed steps in both directions, without any padding.

A sentence of n words takes n + 1 steps. Forward, the inputs ``<S> w1 ... wn`` predict ``w1 ... wn
</S>``; backward, ``</S> wn ... w1`` predict ``wn ... w1 <S>``. Both directions of a row read the
same sentences (the original shuffled them apart), so that the character CNN runs once for both.
Source: bilm-tf ``data.py`` (``_get_batch``); Peters et al. 2018, section 3.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

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
