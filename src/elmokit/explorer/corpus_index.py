"""A corpus whose every word can be found by its vector, for panel 6 of the page."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from elmokit.corpus.readers import read_sentences
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.files.remote import AnyFile
from elmokit.probes.neighbors import batched, is_same_text, unit_rows
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.weights.model_dir import PretrainedBiLM

MAX_INDEX_BYTES = 256_000_000
"""Of vectors; the rest of a longer corpus is not read, and answers say so."""
_SENTENCES_TOGETHER = 512


@dataclass(frozen=True, slots=True)
class Found:
    """A word of the corpus and how near it is."""

    words: list[str]
    """Its sentence; for a static neighbor the word alone."""
    index: int
    similarity: float
    """Cosine."""


@dataclass(frozen=True, slots=True)
class CorpusNeighbors:
    """What is near a word, and in how much text."""

    contextual: list[Found]
    static: list[Found]
    num_sentences: int
    num_words: int
    is_whole: bool
    """False if the corpus is longer than the index."""


class CorpusIndex:
    """Read and embed a corpus in the background, once; then find neighbors in it.

    Args:
        model: Its own tokenizer splits the text.
        paths: Files, directories or patterns, as for every command that reads text.
        max_bytes: Of vectors in memory: of words in context as fp16, of word forms as fp32.
    """

    def __init__(
        self,
        model: PretrainedBiLM,
        paths: Sequence[AnyFile],
        *,
        max_bytes: int = MAX_INDEX_BYTES,
    ) -> None:
        self._model, self._paths, self._max_bytes = model, paths, max_bytes
        self._embedder = Embedder(model, device="cpu")
        self._sentences: list[list[str]] = []
        self._layers: list[np.ndarray] = []  # of L - 1 layers (N, 2D), of length 1
        self._starts = np.zeros(1, np.int64)  # of each sentence in them
        self._tokens: list[str] = []
        self._token_vectors = np.zeros((0, model.output_dim), np.float32)
        self._is_whole = True
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the corpus is read; return whether it is.

        Raises:
            FormatError, OSError, or anything else: why it could not be read.
        """
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()

    def nearest(self, words: Sequence[str], index: int, *, layer: int, top: int) -> CorpusNeighbors:
        """Return the occurrences nearest to a word in its sentence, and the nearest word forms.

        Each sentence gives its nearest word; sentences that are or contain the given one are left
        out. ``layer`` is from 1 to L - 1.
        """
        (own,) = self._embedder.embed([words], layers="all")  # (L, W, 2D)
        query = unit_rows(own[:, index].astype(np.float32))  # (L, 2D)
        return CorpusNeighbors(
            contextual=self._in_context(words, query[layer], layer, top),
            static=self._static(words[index], query[0], top),
            num_sentences=len(self._sentences),
            num_words=int(self._starts[-1]),
            is_whole=self._is_whole,
        )

    def _in_context(
        self, words: Sequence[str], query: Float[np.ndarray, " X"], layer: int, top: int
    ) -> list[Found]:
        if not self._sentences:
            return []
        vectors = self._layers[layer - 1]
        cosines = np.concatenate([
            vectors[first : first + 65_536].astype(np.float32) @ query
            for first in range(0, len(vectors), 65_536)
        ])  # fmt: skip
        best = np.maximum.reduceat(cosines, self._starts[:-1])  # (sentences,)
        found: list[Found] = []
        for sentence in np.argsort(-best, kind="stable").tolist():
            if len(found) == top:
                break
            given = self._sentences[sentence]
            if not is_same_text(words, given):
                first, last = self._starts[sentence : sentence + 2]
                found.append(Found(given, int(cosines[first:last].argmax()), float(best[sentence])))
        return found

    def _static(self, word: str, query: Float[np.ndarray, " X"], top: int) -> list[Found]:
        cosines = self._token_vectors @ query
        order = np.argsort(-cosines, kind="stable")[: top + 1].tolist()
        found = [Found([self._tokens[i]], 0, float(cosines[i])) for i in order]
        return [one for one in found if one.words != [word]][:top]

    def _read(self) -> None:
        try:
            self._index()
        except Exception as error:  # told by `wait`: a thread that just ends looks like no text
            self._error = error

    def _index(self) -> None:
        layers: list[list[np.ndarray]] = [[] for _ in range(self._model.num_layers - 1)]
        tokens: dict[str, np.ndarray] = {}
        lengths: list[int] = []
        dim = self._model.output_dim
        for read in batched(self._distinct(), _SENTENCES_TOGETHER):
            block, num_words, forms = [], sum(lengths), set(tokens)
            for sentence in read:
                num_words += len(sentence)
                forms.update(sentence)
                if dim * (2 * len(layers) * num_words + 4 * len(forms)) > self._max_bytes:
                    self._is_whole = False
                    break
                block.append(sentence)
            for sentence, own in zip(block, self._embedder.embed(block), strict=True):
                for rows, layer in zip(layers, own[1:], strict=True):
                    rows.append(unit_rows(layer.astype(np.float32)).astype(np.float16))
                for word, vector in zip(sentence, own[0], strict=True):
                    if word not in tokens:
                        tokens[word] = vector.copy()  # a view would keep the whole sentence
                self._sentences.append(sentence)
                lengths.append(len(sentence))
            if not self._is_whole:
                break
        if not self._sentences and not self._is_whole:
            raise FormatError(
                "The first sentence of the corpus has more words than the index holds. Put one "
                "sentence on each line."
            )
        if self._sentences:
            self._layers = [np.concatenate(rows) for rows in layers]
            self._starts = np.concatenate([[0], np.cumsum(lengths)])
            self._tokens = list(tokens)
            self._token_vectors = unit_rows(np.stack(list(tokens.values())).astype(np.float32))

    def _distinct(self) -> Iterator[list[str]]:
        """Yield every sentence once."""
        seen: set[int] = set()
        form = self._model.config.char_vocab.normalization
        tokenizer = build_tokenizer(self._model.tokenizer)
        for sentence in read_sentences(self._paths, tokenizer, normalization=form):
            key = hash(tuple(sentence))
            if key not in seen:
                seen.add(key)
                yield sentence
