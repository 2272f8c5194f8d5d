"""elmokit models in spaCy pipelines (extra ``spacy``), found by entry points.

The component ``elmo`` fills ``Doc.tensor`` and serves it as vectors of tokens, spans and documents.
The architecture ``elmokit.Tok2Vec.v1`` is what taggers and parsers learn from: a learned mixture of
the biLM's layers, and a linear layer. Both store the biLM in the pipeline's folder.
"""

# pyright: reportMissingImports=false

import copy
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, no_type_check

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.inference.results import Layers, check_layers, check_one_layer
from elmokit.integrations.shared import embedder_of, files_of, needs_extra
from elmokit.weights.stored_bilm import read_bilm

with needs_extra("spacy", module="spacy"):
    import spacy
    import srsly
    from spacy.language import Language
    from spacy.tokens import Doc, Token
    from spacy.util import minibatch
    from thinc.api import Linear, Model, Shim, chain, with_array

_MODEL_DIR = "bilm"


class StoredBiLM(Shim):
    """An embedder that is loaded on first use, and the files of its model."""

    # A pipeline that is read from disk is first built from its settings, which may name a model
    # that is no longer there, and then gets the stored one.

    def __init__(self, name: str | None) -> None:
        super().__init__(None)
        self._name: str | os.PathLike[str] | None = name
        self._embedder: Embedder | None = None

    @property
    def embedder(self) -> Embedder:
        if self._embedder is None:
            self._embedder = Embedder.load(self._name)
        return self._embedder

    def to_bytes(self, **_: object) -> bytes:
        return srsly.msgpack_dumps(files_of(self.embedder))

    def from_bytes(self, data: bytes, **_: object) -> "StoredBiLM":
        self._embedder = embedder_of(srsly.msgpack_loads(data))  # pyright: ignore[reportArgumentType]
        return self

    def to_device(self, device_type: str, device_id: int) -> None:
        """Do nothing: the embedder chose its device."""

    def finish_update(self, optimizer: object) -> None:
        """Do nothing: the biLM is frozen."""


class ElmoComponent(StoredBiLM):
    """Fills ``Doc.tensor`` with a row (2D,) for every token, and serves the rows as vectors.

    Each sentence is read on its own where sentences are marked (put a ``sentencizer`` or a parser
    before), else the document as one. Tokens of white space are not read; their rows are zeros.
    The vector of a span or document is the mean of its tokens that are read.
    """

    def __init__(
        self, name: str, *, model: str | None, layers: Layers | str, batch_size: int
    ) -> None:
        super().__init__(model)
        self.name, self.layers, self.batch_size = name, layers, batch_size

    def __call__(self, doc: Doc) -> Doc:  # pyright: ignore[reportIncompatibleMethodOverride]
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
    """Return the vectors of all tokens: (W, 2D) each, or (W, L, 2D) with all layers."""
    layers = check_layers(layers, embedder.num_layers)
    # white space is a token of spaCy's, but was no word of the model's training text
    pieces = [
        (doc, [token for token in piece if not token.is_space])
        for doc in docs
        for piece in (doc.sents if doc.has_annotation("SENT_START") else [doc])
    ]
    middle = (embedder.num_layers,) if layers == "all" else ()
    tensors = {
        id(doc): np.zeros((len(doc), *middle, embedder.dim), dtype=np.float32) for doc in docs
    }
    stream = embedder.embed_stream(([t.text for t in piece] for _, piece in pieces), layers=layers)
    for (doc, tokens), vectors in zip(pieces, stream, strict=True):
        tensors[id(doc)][[token.i for token in tokens]] = np.moveaxis(vectors, -2, 0)
    return [tensors[id(doc)] for doc in docs]


@spacy.registry.architectures("elmokit.Tok2Vec.v1")  # pyright: ignore[reportPrivateImportUsage]
@no_type_check
def build_tok2vec(width: int, model: str | None = None) -> Model[list[Doc], list[Any]]:
    """Return a layer from documents to vectors (W, ``width``) that a component can learn from.

    The biLM is frozen; γ Σ softmax(s) h, as in the paper, and a linear layer are learned.
    """
    mix = Model(
        "elmokit_mix", _mix_forward, init=_mix_init, dims={"nO": None},
        params={"mix_weights": None, "gamma": None}, shims=[StoredBiLM(model)],
    )  # fmt: skip
    return chain(mix, with_array(Linear(nO=width)))


def _mix_init(model: Model, X: object = None, Y: object = None) -> Model:
    embedder = _embedder_of(model)
    model.set_dim("nO", embedder.dim)
    model.set_param("mix_weights", model.ops.alloc1f(embedder.num_layers))
    model.set_param("gamma", model.ops.alloc1f(1) + 1)
    return model


def _mix_forward(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[list[Any], Callable[[list[Any]], list[Doc]]]:
    layers = [model.ops.asarray(rows) for rows in _rows(_embedder_of(model), docs, "all")]  # pyright: ignore[reportArgumentType]
    scores, gamma = model.get_param("mix_weights"), model.get_param("gamma")
    weights = model.ops.softmax(scores.reshape(1, -1))[0]  # pyright: ignore[reportCallIssue]
    mixed = [(weights[:, None] * rows).sum(axis=1) for rows in layers]  # (W, E) each

    def backprop(gradients: list[Any]) -> list[Doc]:
        # of γ Σ softmax(s) h, by hand: thinc has no automatic gradients
        pairs = list(zip(gradients, layers, strict=True))
        by_weight = gamma[0] * sum((g[:, None] * rows).sum(axis=(0, 2)) for g, rows in pairs)
        model.inc_grad("mix_weights", weights * (by_weight - (weights * by_weight).sum()))
        by_gamma = sum((g * x).sum() for g, x in zip(gradients, mixed, strict=True))
        model.inc_grad("gamma", model.ops.asarray1f([by_gamma]))
        return docs

    return [gamma[0] * x for x in mixed], backprop


def _embedder_of(model: Model) -> Embedder:
    return model.shims[0].embedder  # pyright: ignore[reportAttributeAccessIssue]
