"""How words outside the vocabulary are spelled: an n-gram model of their bytes.

A language model predicts all of them as ``<UNK>``. With p(spelling | unknown) a word *w* outside
the vocabulary has the probability p(``<UNK>`` | context) p(*w* | unknown), and surprisals of models
with different vocabularies can be compared.

n-grams are of UTF-8 bytes with a sign before and after the word. They begin with a character, so
a context says how many bytes of the last one are missing, and no probability goes to what has not
the shape of UTF-8. Each context keeps ``q = (c(context, byte) - D) / c(context)`` of the bytes
that are stored for it, and gives the rest to the next shorter context (interpolated absolute
discounting; Ney et al. 1994). Rare n-grams are left out. A word does not end where it would be one
of the vocabulary, so the probabilities of all words outside it sum to one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from elmokit.errors import FormatError
from elmokit.files.atomic import atomic_file
from elmokit.files.lines import read_bounded
from elmokit.shapes import Bool, Float, Int, UInt8, UInt64
from elmokit.text.word_vocab import WordVocab

MAX_LENGTH = 8
"""Bytes of the longest n-gram, which fit a 64-bit number: two Korean syllables before a third."""
MAX_NGRAMS = 150_000
DISCOUNT = 0.75
NUM_BEGINNINGS = 128 + 51 + 1
"""What may stand where a character begins: ASCII, first bytes of longer ones, the end."""
NUM_CONTINUATIONS = 64
_BEGIN, END_OF_WORD = 0xFF, 0xFE
"""Signs around a word: bytes that UTF-8 never has."""
_STEPS, _NONE = 16, 255
"""Stored costs are whole sixteenths of a bit, rounded up, or none: q is 0."""
_MAX_FILE_BYTES = 1 << 24


class SpellingModel:
    """The stored n-grams: a tree from short to long, level by level, each in ascending order.

    ``symbols`` is the last byte of each n-gram, ``num_children`` how many n-grams go on with each
    (first, how many begin the tree), ``costs`` -log2 q in sixteenths of a bit. `ValueError` if the
    arrays are no such tree.
    """

    def __init__(self, symbols: np.ndarray, num_children: np.ndarray, costs: np.ndarray) -> None:
        arrays = (symbols, num_children, costs)
        sizes = {len(symbols) + 1, len(num_children), len(costs) + 1}
        kinds = {(array.dtype.name, array.ndim) for array in arrays}
        _check(kinds == {("uint8", 1)} and len(sizes) == 1)
        self._arrays = {"symbols": symbols, "num_children": num_children, "costs": costs}
        probs = np.where(costs == _NONE, 0.0, 2.0 ** (-costs.astype(np.float64) / _STEPS))
        self._levels: list[_Level] = []
        keys, first = np.zeros(1, np.uint64), 0
        shares = np.ones(1)
        while len(keys):
            children = num_children[first + 1 - len(keys) : first + 1].astype(np.int64)
            owner = np.repeat(np.arange(len(keys)), children)
            level = slice(first, first + len(owner))
            _check(level.stop <= len(symbols) and len(self._levels) <= MAX_LENGTH)
            rests = 1.0 - np.bincount(owner, probs[level], minlength=len(keys))
            self._levels.append(_Level(keys, shares, rests))
            keys = (keys[owner] << np.uint64(8)) | symbols[level]
            shares, first = probs[level], level.stop
            # in order, and no context gives more than 1
            _check(bool(rests.min() > 0) and not (keys[1:] <= keys[:-1]).any())
        _check(first == len(symbols) and len(self._levels) > 1)
        of_end = self._levels[1].find(np.array([END_OF_WORD], np.uint64), "shares", 0.0)
        self._ending = float(of_end[0] + self._levels[0].rests[0] / NUM_BEGINNINGS)

    @classmethod
    def train(cls, words: Sequence[str]) -> "SpellingModel":
        """Learn from distinct words outside the vocabulary, each counted once."""
        flat, place = _bytes_of(words)
        found = [
            np.unique(_ngrams(flat, place, length), return_counts=True)
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

    def nats(self, words: Sequence[str], vocab: WordVocab) -> Float[np.ndarray, " N"]:
        """Return -ln p(spelling) of words that are not empty and not in the vocabulary."""
        if not len(words):
            return np.zeros(0)
        flat, place = _bytes_of(words)
        at, first = np.flatnonzero(place > 0), np.flatnonzero(place == 0)
        nats = np.zeros(len(flat))
        nats[at] = -np.log(self._probs(flat, place, at, flat[at]))
        # where a word of the vocabulary could end, no word ends
        longest = max(map(len, vocab.words))
        known = [
            begin + 1 + len(word[:length].encode("utf-8", "surrogatepass"))
            for begin, word in zip(first.tolist(), words, strict=True)
            for length in range(1, min(longest + 1, len(word)))
            if word[:length] in vocab
        ]
        at = np.array(known, dtype=np.int64)
        ends = np.full(len(at), END_OF_WORD, np.uint8)
        nats[at] += np.log1p(-self._probs(flat, place, at, ends))
        return np.add.reduceat(nats, first)

    def next_probs(self, prefixes: Sequence[bytes], vocab: WordVocab) -> Float[np.ndarray, "N 256"]:
        """Return the probability of each next byte of an unknown word; `END_OF_WORD` ends it."""
        flat, place = _bytes_of(prefixes)
        last = np.flatnonzero(flat == END_OF_WORD)
        allowed = np.stack([_may_follow(prefix, vocab) for prefix in prefixes])
        row, byte = np.nonzero(allowed)
        probs = np.zeros(allowed.shape)
        probs[row, byte] = self._probs(flat, place, last[row], byte.astype(np.uint8))
        return probs / probs.sum(axis=1, keepdims=True)

    def _probs(
        self, flat: np.ndarray, place: np.ndarray, at: np.ndarray, symbols: np.ndarray
    ) -> Float[np.ndarray, " N"]:
        """Return the probabilities of bytes at indices of ``flat``, after the bytes before them."""
        probs = np.where(_begins(symbols), 1 / NUM_BEGINNINGS, 1 / NUM_CONTINUATIONS)
        for length in range(1, len(self._levels)):
            rows = np.flatnonzero(place[at] >= length - 1)
            begins = symbols[rows] if length == 1 else flat[at[rows] - length + 1]
            rows = rows[_begins(begins)]
            contexts = _keys(flat, at[rows] - 1, length - 1)
            keys = (contexts << np.uint64(8)) | symbols[rows]
            rest = self._levels[length - 1].find(contexts, "rests", 1.0)
            probs[rows] = rest * probs[rows] + self._levels[length].find(keys, "shares", 0.0)
            if length == 1:  # a word has at least one byte
                probs[place[at] == 1] /= 1 - self._ending
        return probs

    @classmethod
    def read(cls, path: Path) -> "SpellingModel":
        try:
            arrays = load(read_bounded(path, _MAX_FILE_BYTES))
            return cls(arrays["symbols"], arrays["num_children"], arrays["costs"])
        except (SafetensorError, KeyError, ValueError) as error:
            raise FormatError(
                f"{path}: no model of spellings ({error}). Copy the whole model directory again."
            ) from error

    @classmethod
    def of_model(cls, path: Path, sha256: str | None) -> "SpellingModel | None":
        """Read the file of a model that states its hash; None if it states none and has none."""
        spelling = cls.read(path) if path.exists() else None
        if sha256 not in (None, spelling and spelling.sha256):
            raise FormatError(
                f"{path}: missing, or of another model. Copy the whole model directory again."
            )
        return spelling

    def write(self, path: Path) -> None:
        with atomic_file(path) as temp_path:
            temp_path.write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        return save(self._arrays)

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()


def _check(is_tree: bool) -> None:
    if not is_tree:
        raise ValueError("the arrays are no tree of n-grams")


@dataclass(frozen=True)
class _Level:
    keys: UInt64[np.ndarray, " N"]
    """Bytes as a number, ascending."""
    shares: Float[np.ndarray, " N"]
    rests: Float[np.ndarray, " N"]
    """What each, as a context, leaves to shorter contexts."""

    def find(self, keys: np.ndarray, field: str, default: float) -> Float[np.ndarray, " M"]:
        index = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[index] == keys, getattr(self, field)[index], default)


def _bytes_of(
    words: Sequence[str | bytes],
) -> tuple[UInt8[np.ndarray, " S"], Int[np.ndarray, " S"]]:
    """Return all words in a row, with signs around each, and the index of each byte in its word."""
    encoded = (
        word if isinstance(word, bytes) else word.encode("utf-8", "surrogatepass") for word in words
    )
    rows = [b"\xff" + word + b"\xfe" for word in encoded]
    lengths = np.array([len(row) for row in rows])
    place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.frombuffer(b"".join(rows), np.uint8), place


def _begins(flat: UInt8[np.ndarray, " S"]) -> Bool[np.ndarray, " S"]:
    return (flat & 0xC0) != 0x80


def _may_follow(prefix: bytes, vocab: WordVocab) -> Bool[np.ndarray, " 256"]:
    """Tell which bytes may come next: those of a character, or the end of an unknown word."""
    allowed = np.zeros(256, np.bool_)
    begin = next((i for i in reversed(range(len(prefix))) if prefix[i] & 0xC0 != 0x80), None)
    lead = 0 if begin is None else prefix[begin]
    num_bytes = 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)
    if begin is not None and len(prefix) - begin < num_bytes:
        allowed[0x80:0xC0] = True
        return allowed
    allowed[:0x80] = allowed[0xC2:0xF5] = True
    word = prefix.decode("utf-8", "replace")
    allowed[END_OF_WORD] = bool(prefix) and word not in vocab
    return allowed


def _ngrams(flat: np.ndarray, place: np.ndarray, length: int) -> UInt64[np.ndarray, " N"]:
    """Return the key of every n-gram that begins with a character."""
    last = np.flatnonzero(place >= length - 1)
    return _keys(flat, last[_begins(flat[last - length + 1])], length)


def _keys(flat: np.ndarray, last: np.ndarray, length: int) -> UInt64[np.ndarray, " N"]:
    keys = np.zeros(len(last), np.uint64)
    for back in range(length - 1, -1, -1):
        keys = (keys << np.uint64(8)) | flat[last - back]
    return keys
