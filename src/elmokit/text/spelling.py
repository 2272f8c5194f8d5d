"""How words outside the vocabulary are spelled: an n-gram model of their bytes.

A language model predicts all of them as ``<UNK>``. With p(spelling | unknown) a word *w* outside
the vocabulary has the probability p(``<UNK>`` | context) p(*w* | unknown), and surprisals of models
with different vocabularies can be compared.

n-grams are of UTF-8 bytes with a sign before and after the word. They begin with a character, so
a context says how many bytes of the last one are missing, and no probability goes to what has not
the shape of UTF-8. Each context keeps ``q = (c(context, byte) - D) / c(context)`` of the bytes
that are stored for it, and gives the rest to the next shorter context (interpolated absolute
discounting; Ney et al. 1994). Rare n-grams are left out. Spellings of words that are in the
vocabulary are excluded, so the probabilities of all other words sum to one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8, UInt64
from safetensors import SafetensorError
from safetensors.numpy import load, save

from elmokit.errors import FormatError
from elmokit.files.atomic import atomic_file
from elmokit.files.bounded import read_bounded

MAX_LENGTH = 8
"""Bytes of the longest n-gram, which fit a 64-bit number: two Korean syllables before a third."""
MAX_NGRAMS = 150_000
"""n-grams in a file, three bytes each."""
DISCOUNT = 0.75
NUM_BEGINNINGS = 128 + 51 + 1
"""What may stand where a character begins: ASCII, first bytes of longer ones, the end."""
NUM_CONTINUATIONS = 64
_BEGIN, _END = 0xFF, 0xFE
"""Signs around a word: bytes that UTF-8 never has."""
_STEPS, _NONE = 16, 255
"""Stored costs are whole sixteenths of a bit, rounded up, or none: q is 0."""
_MAX_FILE_BYTES = 1 << 24


class SpellingModel:
    """The stored n-grams: a tree from short to long, level by level, each in ascending order.

    Args:
        symbols: Last byte of each n-gram.
        num_children: How many n-grams go on with each; first, how many begin the tree.
        costs: -log2 q of each, in sixteenths of a bit.

    Raises:
        ValueError: if the arrays are no such tree.
    """

    def __init__(self, symbols: np.ndarray, num_children: np.ndarray, costs: np.ndarray) -> None:
        arrays = (symbols, num_children, costs)
        sizes = {len(symbols) + 1, len(num_children), len(costs) + 1}
        if any(array.dtype != np.uint8 for array in arrays) or len(sizes) > 1:
            raise ValueError("`symbols`, `num_children` and `costs` do not belong together")
        self._arrays = {"symbols": symbols, "num_children": num_children, "costs": costs}
        probs = np.where(costs == _NONE, 0.0, 2.0 ** (-costs.astype(np.float64) / _STEPS))
        self._levels: list[_Level] = []
        keys, first = np.zeros(1, np.uint64), 0
        shares = np.ones(1)
        while len(keys):
            children = num_children[first + 1 - len(keys) : first + 1].astype(np.int64)
            owner = np.repeat(np.arange(len(keys)), children)
            level = slice(first, first + len(owner))
            if level.stop > len(symbols) or len(self._levels) > MAX_LENGTH:
                raise ValueError("the tree of n-grams is damaged")
            rests = 1 - np.bincount(owner, probs[level], minlength=len(keys))
            self._levels.append(_Level(keys, shares, rests))
            keys = (keys[owner] << np.uint64(8)) | symbols[level]
            shares, first = probs[level], level.stop
            if rests.min() <= 0 or (keys[1:] <= keys[:-1]).any():
                raise ValueError("the n-grams are out of order, or more probable than one")
        if first < len(symbols):
            raise ValueError("n-grams are left over")

    @classmethod
    def train(cls, words: Sequence[str]) -> "SpellingModel":
        """Learn from distinct words outside the vocabulary, of which there must be one.

        A word counts once, however often it occurs: most of what is to be spelled is new.
        """
        flat, place = _bytes_of(words)
        found = [
            np.unique(_ngrams(flat, place, length)[1], return_counts=True)
            for length in range(1, MAX_LENGTH + 1)
        ]
        tallies = np.sort(np.concatenate([counts for _, counts in found]))
        least = 1 if len(tallies) <= MAX_NGRAMS else int(tallies[-MAX_NGRAMS - 1]) + 1
        # an n-gram is no more frequent than what it goes on from, so the rest is still a tree
        levels = [(keys[counts >= least], counts[counts >= least]) for keys, counts in found]
        parents, totals = np.zeros(1, np.uint64), np.array([(place > 0) & _begins(flat)]).sum(1)
        symbols, costs, num_children = [], [], []
        for keys, counts in levels:
            owner = np.searchsorted(parents, keys >> np.uint64(8))
            num_children.append(np.bincount(owner, minlength=len(parents)))
            symbols.append(keys & np.uint64(0xFF))
            steps = np.ceil(-np.log2((counts - DISCOUNT) / totals[owner]) * _STEPS)
            costs.append(np.where(steps < _NONE, steps, _NONE))
            parents, totals = keys, counts
        costs[0][symbols[0] == _BEGIN] = _NONE  # it stands before every word, and is never spelled
        num_children.append(np.zeros(len(parents)))
        joined = (np.concatenate(part).astype(np.uint8) for part in (symbols, num_children, costs))
        return cls(*joined)

    def nats(self, words: Sequence[str]) -> Float[np.ndarray, " N"]:
        """Return -ln p(spelling) of words that are not empty, in the vocabulary or not."""
        if not len(words):
            return np.zeros(0)
        flat, place = _bytes_of(words)
        probs = np.where(_begins(flat), 1 / NUM_BEGINNINGS, 1 / NUM_CONTINUATIONS)
        for length in range(1, len(self._levels)):
            rows, keys = _ngrams(flat, place, length)
            rest = self._levels[length - 1].find(keys >> np.uint64(8), "rests", 1.0)
            share = self._levels[length].find(keys, "shares", 0.0)
            probs[rows] = rest * probs[rows] + share
            if length == 1:  # a word has at least one byte
                probs[place == 1] /= 1 - probs[-1]
        nats = np.where(place > 0, -np.log(probs), 0.0)
        return np.add.reduceat(nats, np.flatnonzero(place == 0))

    def normalizer(self, vocabulary: Sequence[str]) -> float:
        """Return ln of the probability that a spelling is that of no word of the vocabulary."""
        return float(np.log1p(-np.exp(-self.nats(vocabulary)).sum()))

    @classmethod
    def read(cls, path: Path) -> "SpellingModel":
        """Read a file; `FormatError` if it is damaged."""
        try:
            arrays = load(read_bounded(path, _MAX_FILE_BYTES))
            return cls(arrays["symbols"], arrays["num_children"], arrays["costs"])
        except (SafetensorError, KeyError, ValueError) as error:
            raise FormatError(
                f"{path}: no model of spellings ({error}). Copy the whole model directory again."
            ) from error

    def write(self, path: Path) -> None:
        """Write the file atomically."""
        with atomic_file(path) as temp_path:
            temp_path.write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the contents of the file."""
        return save(self._arrays)

    @cached_property
    def sha256(self) -> str:
        """Hash of the n-grams."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


@dataclass(frozen=True)
class _Level:
    """The n-grams of one length."""

    keys: UInt64[np.ndarray, " N"]
    """Their bytes as a number, ascending."""
    shares: Float[np.ndarray, " N"]
    """q of the last byte."""
    rests: Float[np.ndarray, " N"]
    """What each, as a context, leaves to shorter contexts."""

    def find(self, keys: np.ndarray, field: str, default: float) -> Float[np.ndarray, " M"]:
        index = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[index] == keys, getattr(self, field)[index], default)


def _bytes_of(words: Sequence[str]) -> tuple[UInt8[np.ndarray, " S"], Int[np.ndarray, " S"]]:
    """Return all words in a row, with signs around each, and the index of each byte in its word."""
    rows = [b"\xff" + word.encode("utf-8", "surrogatepass") + b"\xfe" for word in words]
    lengths = np.array([len(row) for row in rows])
    place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.frombuffer(b"".join(rows), np.uint8), place


def _begins(flat: UInt8[np.ndarray, " S"]) -> Bool[np.ndarray, " S"]:
    """Tell which bytes begin a character."""
    return (flat & 0xC0) != 0x80


def _ngrams(
    flat: np.ndarray, place: np.ndarray, length: int
) -> tuple[Int[np.ndarray, " N"], UInt64[np.ndarray, " N"]]:
    """Return the index of the last byte of every n-gram that begins with a character, and its key.

    n-grams do not go beyond a word.
    """
    last = np.flatnonzero(place >= length - 1)
    last = last[_begins(flat[last - length + 1])]
    keys = np.zeros(len(last), np.uint64)
    for back in range(length - 1, -1, -1):
        keys = (keys << np.uint64(8)) | flat[last - back]
    return last, keys
