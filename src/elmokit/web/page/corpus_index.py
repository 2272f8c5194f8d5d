"""A corpus whose every word can be found by its vector, for panel 6 of the page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from elmokit.corpus.readers import read_sentences
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.files.remote import AnyFile
from elmokit.probes.neighbors import is_same_text, unit_rows
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.weights.model_dir import PretrainedBiLM

MAX_INDEX_BYTES = 256_000_000
"""Of vectors; the rest of a longer corpus is not read, and answers say so."""
_ROWS_TOGETHER = 65_536


@dataclass(frozen=True, slots=True)
class IndexedWord:
    """A word of the corpus and how near it is."""

    words: list[str]
    """Its sentence; for a static neighbor the word alone."""
    index: int
    similarity: float
    """Cosine."""


@dataclass(frozen=True, slots=True)
class CorpusNeighbors:
    """What is near a word, and in how much text."""

    contextual: list[IndexedWord]
    static: list[IndexedWord]
    num_sentences: int
    num_words: int
    is_whole: bool
    """False if the corpus is longer than the index."""


@dataclass(frozen=True, eq=False)
class CorpusIndex:
    """The vectors of a corpus, all of length 1."""

    embedder: Embedder
    sentences: list[list[str]]
    starts: Int[np.ndarray, " S1"]
    """Where each sentence starts in the rows of ``layers``, and where the last one ends."""
    layers: Float[np.ndarray, "M W E"]
    """Those above the token layer, as fp16."""
    forms: list[str]
    """The distinct words."""
    form_vectors: Float[np.ndarray, "U E"]
    """Of the token layer."""
    is_whole: bool

    def nearest(self, words: Sequence[str], index: int, *, layer: int, top: int) -> CorpusNeighbors:
        """Return the occurrences nearest to a word in its sentence, and the nearest word forms.

        Each sentence gives its nearest word; sentences that are or contain the given one are left
        out. ``layer`` is from 1 to L - 1.
        """
        (vectors,) = self.embedder.embed([words], layers="all")  # (L, W, 2D)
        query = unit_rows(vectors[:, index].astype(np.float32))  # (L, 2D)
        return CorpusNeighbors(
            contextual=self._in_context(words, query[layer], self.layers[layer - 1], top),
            static=self._static(words[index], query[0], top),
            num_sentences=len(self.sentences),
            num_words=int(self.starts[-1]),
            is_whole=self.is_whole,
        )

    def _in_context(
        self,
        words: Sequence[str],
        query: Float[np.ndarray, " E"],
        vectors: Float[np.ndarray, "W E"],
        top: int,
    ) -> list[IndexedWord]:
        cosines = np.concatenate([
            vectors[first : first + _ROWS_TOGETHER].astype(np.float32) @ query
            for first in range(0, len(vectors), _ROWS_TOGETHER)
        ])  # fmt: skip
        best = np.maximum.reduceat(cosines, self.starts[:-1])  # (sentences,)
        nearest: list[IndexedWord] = []
        for number in np.argsort(-best, kind="stable").tolist():
            if len(nearest) == top:
                break
            sentence = self.sentences[number]
            if not is_same_text(words, sentence):
                first, last = self.starts[number : number + 2]
                index = int(cosines[first:last].argmax())
                nearest.append(IndexedWord(sentence, index, float(best[number])))
        return nearest

    def _static(self, word: str, query: Float[np.ndarray, " E"], top: int) -> list[IndexedWord]:
        cosines = self.form_vectors @ query
        order = np.argsort(-cosines, kind="stable")[: top + 1].tolist()
        others = [i for i in order if self.forms[i] != word]
        return [IndexedWord([self.forms[i]], 0, float(cosines[i])) for i in others[:top]]


def index_corpus(
    model: PretrainedBiLM, paths: Sequence[AnyFile], *, max_bytes: int = MAX_INDEX_BYTES
) -> CorpusIndex:
    """Read and embed a corpus, every sentence once, as far as its vectors fit.

    Args:
        model: Its own tokenizer splits the text.
        paths: Files, directories or patterns, as for every command that reads text.
        max_bytes: Of vectors in memory: of words in context as fp16, of word forms as fp32.
    """
    num_layers, dim = model.num_layers - 1, model.output_dim
    sentences: list[list[str]] = []
    forms: dict[str, int] = {}
    num_words, is_whole = 0, True
    for sentence in _distinct_sentences(model, paths):
        new_forms = [word for word in dict.fromkeys(sentence) if word not in forms]
        num_words += len(sentence)
        if dim * (2 * num_layers * num_words + 4 * (len(forms) + len(new_forms))) > max_bytes:
            num_words, is_whole = num_words - len(sentence), False
            break
        forms |= {word: len(forms) + i for i, word in enumerate(new_forms)}
        sentences.append(sentence)
    if not sentences:
        raise FormatError(
            "The first sentence of the corpus has more words than the index holds. Put one "
            "sentence on each line."
        )
    embedder = Embedder(model, device="cpu")
    starts = np.cumsum([0, *map(len, sentences)])
    layers = np.empty((num_layers, num_words, dim), np.float16)
    form_vectors = np.empty((len(forms), dim), np.float32)
    stream = embedder.embed_stream(sentences)
    for sentence, start, vectors in zip(sentences, starts, stream, strict=False):
        end = start + len(sentence)
        layers[:, start:end] = unit_rows(vectors[1:].astype(np.float32))
        form_vectors[[forms[word] for word in sentence]] = vectors[0]
    return CorpusIndex(
        embedder, sentences, starts, layers, list(forms), unit_rows(form_vectors), is_whole
    )


def _distinct_sentences(model: PretrainedBiLM, paths: Sequence[AnyFile]) -> Iterator[list[str]]:
    seen: set[int] = set()
    form = model.config.char_vocab.normalization
    for sentence in read_sentences(paths, build_tokenizer(model.tokenizer), normalization=form):
        key = hash(tuple(sentence))
        if key not in seen:
            seen.add(key)
            yield sentence
