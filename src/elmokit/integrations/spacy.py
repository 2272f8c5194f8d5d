"""elmokit models in spaCy pipelines (extra ``spacy``), found by an entry point.

The component ``elmo`` fills ``Doc.tensor`` and serves it as vectors of tokens, spans and documents.
It stores the biLM in the pipeline's folder.
"""

# pyright: reportMissingImports=false

import copy
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, no_type_check

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError, needs_extra
from elmokit.inference.layers_and_states import Layers, check_one_layer
from elmokit.integrations.shared import embedder_of, files_of
from elmokit.weights.stored_bilm import read_bilm

with needs_extra("spacy", module="spacy"):
    import srsly
    from spacy.language import Language
    from spacy.tokens import Doc, Token
    from spacy.util import minibatch

_MODEL_DIR = "bilm"


class ElmoComponent:
    """Fills ``Doc.tensor`` with a row (2D,) for every token, and serves the rows as vectors.

    Each sentence is read on its own where sentences are marked (put a ``sentencizer`` or a parser
    before), else the document as one. Tokens of white space are not read; their rows are zeros.
    The vector of a span or document is the mean of its tokens that are read.
    """

    def __init__(
        self, name: str, *, model: str | None, layers: Layers | str, batch_size: int
    ) -> None:
        self.name, self.layers, self.batch_size = name, layers, batch_size
        self._model, self._embedder = model, None

    @property
    def embedder(self) -> Embedder:
        """The embedder, loaded on first use.

        A pipeline that is read from disk is first built from its settings, which may name a model
        that is no longer there, and then gets the stored one.
        """
        if self._embedder is None:
            self._embedder = Embedder.load(self._model)
        return self._embedder

    def __call__(self, doc: Doc) -> Doc:
        return self._embed([doc])[0]

    def pipe(self, stream: Iterable[Doc], *, batch_size: int | None = None) -> Iterator[Doc]:
        """Process documents in batches; those of `nlp.pipe` are divided if they are larger."""
        for docs in minibatch(stream, min(batch_size or self.batch_size, self.batch_size)):
            yield from self._embed(docs)

    def _embed(self, docs: list[Doc]) -> list[Doc]:
        for doc, rows in zip(docs, _rows(self.embedder, docs, self.layers), strict=True):
            doc.tensor = rows
            add_vector_hooks(doc)
        return docs

    def to_bytes(self, **_: object) -> bytes:
        return srsly.msgpack_dumps(files_of(self.embedder))

    def from_bytes(self, data: bytes, **_: object) -> "ElmoComponent":
        self._embedder = embedder_of(srsly.msgpack_loads(data))  # pyright: ignore[reportArgumentType]
        return self

    def to_disk(self, path: str | Path, **_: object) -> None:
        self.embedder.stored().save(Path(path) / _MODEL_DIR)

    def from_disk(self, path: str | Path, **_: object) -> "ElmoComponent":
        # a copy in memory, not mapped from the files: the folder may go
        self._embedder = Embedder(copy.deepcopy(read_bilm(Path(path) / _MODEL_DIR)))
        return self


@Language.factory(
    "elmo",
    default_config={"model": None, "layers": "average", "batch_size": 64},
    assigns=["doc.tensor"],
)
@no_type_check  # spaCy reads the signature, which run-time checks of annotations hide
def make_elmo(
    nlp: Language, name: str, model: str | None, layers: str | int, batch_size: int
) -> ElmoComponent:
    """Make the component ``elmo``; ``batch_size`` documents are computed together, at most."""
    layer: Any = int(layers) if str(layers).isdecimal() else layers
    check_one_layer(layer)
    if batch_size < 1:
        raise InputError(f"`batch_size` must be at least 1, got {batch_size}.")
    return ElmoComponent(name, model=model, layers=layer, batch_size=batch_size)


def add_vector_hooks(doc: Doc) -> Doc:
    """Serve ``doc.tensor`` as vectors of its tokens, spans and itself.

    Call it for documents that were read back from bytes: spaCy stores the tensor, not the hooks.
    """
    hooks = {"vector": _vector, "has_vector": _has_vector, "similarity": _cosine}
    # a span calls the hook `vector` for its norm if it has one of its own (spaCy 3.8)
    doc.user_span_hooks.update(hooks)
    doc.user_token_hooks.update(hooks, vector_norm=_norm)
    doc.user_hooks.update(hooks, vector_norm=_norm)
    return doc


def _read(part: Any) -> list[int]:
    """Return the places of the tokens of a token, span or document that are read."""
    tokens = [part] if isinstance(part, Token) else part
    return [token.i for token in tokens if not token.is_space]


def _vector(part: Any) -> np.ndarray:
    tensor, rows = (part if isinstance(part, Doc) else part.doc).tensor, _read(part)
    return tensor[rows].mean(axis=0) if rows else np.zeros(tensor.shape[1], dtype=np.float32)


def _has_vector(part: Any) -> bool:
    return bool(_read(part))


def _norm(part: Any) -> float:
    return float(np.linalg.norm(part.vector))


def _cosine(part: Any, other: Any) -> float:
    norms = _norm(part) * _norm(other)
    return float(np.dot(part.vector, other.vector) / norms) if norms else 0.0


def _rows(embedder: Embedder, docs: list[Doc], layers: Layers | str) -> list[np.ndarray]:
    """Return the vectors of all tokens: (W, 2D) each."""
    # white space is a token of spaCy's, but was no word of the model's training text
    pieces = [
        (doc, [token for token in piece if not token.is_space])
        for doc in docs
        for piece in (doc.sents if doc.has_annotation("SENT_START") else [doc])
    ]
    tensors = {id(doc): np.zeros((len(doc), embedder.dim), dtype=np.float32) for doc in docs}
    stream = embedder.embed_stream(([t.text for t in piece] for _, piece in pieces), layers=layers)
    for (doc, tokens), vectors in zip(pieces, stream, strict=True):
        tensors[id(doc)][[token.i for token in tokens]] = vectors
    return [tensors[id(doc)] for doc in docs]
