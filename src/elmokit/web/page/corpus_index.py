"""A corpus whose every word can be found by its vector, for panel 6 of the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elmokit.corpus.readers import read_sentences
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.files.remote import AnyFile
from elmokit.probes.neighbors import is_same_text, unit_rows
from elmokit.shapes import Float, Int
from elmokit.text.tokenizers.registry import build_tokenizer

MAX_INDEX_BYTES = 256_000_000
"""Size of the vectors; the rest of a longer corpus is not read, and answers say so."""
_ROWS_TOGETHER = 65_536


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
    """Their vectors in the token layer."""
    is_whole: bool

    def nearest(self, words: Sequence[str], index: int, *, layer: int, top: int) -> dict[str, Any]:
        """Return the occurrences nearest to a word in its sentence, and the nearest word forms.

        Each sentence gives its nearest word; sentences that are or contain the given one are left
        out. ``layer`` is from 1 to L - 1.
        """
        (vectors,) = self.embedder.embed([words], layers="all")  # (L, W, 2D)
        query = unit_rows(vectors[:, index].astype(np.float32))  # (L, 2D)
        return {
            "contextual": self._in_context(words, query[layer], self.layers[layer - 1], top),
            "static": self._static(words[index], query[0], top),
            "num_sentences": len(self.sentences),
            "num_words": int(self.starts[-1]),
            "is_whole": self.is_whole,
        }

    def _in_context(
        self, words: Sequence[str], query: np.ndarray, vectors: np.ndarray, top: int
    ) -> list[dict[str, Any]]:
        cosines = np.concatenate([
            vectors[first : first + _ROWS_TOGETHER].astype(np.float32) @ query
            for first in range(0, len(vectors), _ROWS_TOGETHER)
        ])  # fmt: skip
        best = np.maximum.reduceat(cosines, self.starts[:-1])  # (sentences,)
        nearest: list[dict[str, Any]] = []
        for number in np.argsort(-best, kind="stable").tolist():
            if len(nearest) == top:
                break
            sentence = self.sentences[number]
            if not is_same_text(words, sentence):
                first, last = self.starts[number : number + 2]
                index = int(cosines[first:last].argmax())
                nearest.append(_neighbor(sentence, index, float(best[number])))
        return nearest

    def _static(self, word: str, query: np.ndarray, top: int) -> list[dict[str, Any]]:
        cosines = self.form_vectors @ query
        order = np.argsort(-cosines, kind="stable")[: top + 1].tolist()
        others = [i for i in order if self.forms[i] != word]
        return [_neighbor([self.forms[i]], 0, float(cosines[i])) for i in others[:top]]


def _neighbor(words: list[str], index: int, cosine: float) -> dict[str, Any]:
    return {"words": words, "index": index, "similarity": cosine}


def index_corpus(
    embedder: Embedder, paths: Sequence[AnyFile], *, max_bytes: int = MAX_INDEX_BYTES
) -> CorpusIndex:
    """Read and embed a corpus, every sentence once, as far as its vectors fit into ``max_bytes``.

    Vectors of words in context are kept as fp16, those of word forms as fp32.
    """
    model = embedder.model
    num_layers, dim = model.num_layers - 1, model.output_dim
    sentences: dict[tuple[str, ...], None] = {}
    forms: dict[str, int] = {}
    num_words, is_whole = 0, True
    tokenizer, normalization = build_tokenizer(model.tokenizer), embedder.normalization
    for words in read_sentences(paths, tokenizer, normalization=normalization):
        if (sentence := tuple(words)) in sentences:
            continue
        num_forms = len(forms) + len(set(words) - forms.keys())
        if dim * (2 * num_layers * (num_words + len(words)) + 4 * num_forms) > max_bytes:
            is_whole = False
            break
        num_words += len(words)
        for word in words:
            forms.setdefault(word, len(forms))
        sentences[sentence] = None
    if not sentences:
        raise FormatError(
            "The first sentence of the corpus has more words than the index holds. Put one "
            "sentence on each line."
        )
    starts = np.cumsum([0, *map(len, sentences)])
    layers = np.empty((num_layers, num_words, dim), np.float16)
    form_vectors = np.empty((len(forms), dim), np.float32)
    stream = embedder.embed_stream(map(list, sentences))
    for sentence, start, vectors in zip(sentences, starts, stream, strict=False):
        layers[:, start : start + len(sentence)] = unit_rows(vectors[1:].astype(np.float32))
        form_vectors[[forms[word] for word in sentence]] = vectors[0]
    return CorpusIndex(
        embedder, list(map(list, sentences)), starts, layers, list(forms), unit_rows(form_vectors),
        is_whole,
    )  # fmt: skip
