"""elmokit models as flair embeddings (extra ``flair``).

flair 0.15 needs transformers below 5 and conllu below 5: give it an environment of its own.
"""

# pyright: reportMissingImports=false

from typing import Any

import torch

from elmokit.embed.embedder import Embedder
from elmokit.inference.results import Layers, check_layers, check_one_layer
from elmokit.integrations.shared import AnyModel, embedder_of, files_of, needs_extra

with needs_extra("flair", module="flair"):
    import flair
    from flair.data import Sentence
    from flair.embeddings.base import TokenEmbeddings, register_embeddings


@register_embeddings("ElmokitEmbeddings")
class ElmoEmbeddings(TokenEmbeddings):
    """Vectors of the tokens of flair's sentences; the biLM is frozen and saved with a tagger.

    ``model`` may be an `Embedder`, too; ``layers`` is ``"average"``, ``"top"`` or a layer's number.
    """

    def __init__(
        self, model: AnyModel | Embedder = None, *, layers: Layers | str = "average"
    ) -> None:
        super().__init__()
        check_one_layer(layers)
        self.embedder = model if isinstance(model, Embedder) else Embedder.load(model)
        self.layers = check_layers(layers, self.embedder.num_layers)
        # of its own for every model: flair computes nothing where a token has vectors of this name
        self.name = f"elmokit-{self.embedder.metadata()['model_hash'][:8]}-{layers}"
        self.static_embeddings = True
        self.eval()

    @property
    def embedding_length(self) -> int:
        return self.embedder.dim

    def _add_embeddings_internal(self, sentences: list[Sentence]) -> list[Sentence]:
        words = [[token.text for token in sentence] for sentence in sentences]
        for sentence, vectors in zip(
            sentences, self.embedder.embed(words, layers=self.layers), strict=True
        ):
            rows = torch.from_numpy(vectors).to(flair.device)
            for token, row in zip(sentence, rows, strict=True):
                token.set_embedding(self.name, row)
        return sentences

    def to_params(self) -> dict[str, Any]:
        """Return settings and the files of the model, for flair's own files."""
        return {"files": files_of(self.embedder), "layers": self.layers}

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> "ElmoEmbeddings":
        return cls(embedder_of(params["files"]), layers=params["layers"])
