"""Static vectors as a task model reads them: at its input, and in the place of mixtures."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmokit.tasks.inputs.settings import InputSettings
from elmokit.vectors.static_vectors import StaticVectors


class StaticInputs(nn.Module):
    """Vectors by word, which are not trained.

    With ``static_scale="learned"``, each place where they are read has a learned scale γ. In the
    condition ``static_output`` that is also the output of the first encoder. In
    ``static_projected`` a learned linear map of the vectors, to ``layers_dim`` (2D), stands
    wherever ELMo would be read, so that the network is as wide as with ELMo. Fresh maps keep the
    size of the vectors; they are drawn with seed 0 until a model draws its own.

    Shape: ids (B, W) -> (B, W, S).
    """

    def __init__(self, vectors: StaticVectors, settings: InputSettings, layers_dim: int) -> None:
        super().__init__()
        self.set_vectors(vectors)
        self.gammas = self.projections = None
        self.mix_dim = 0
        """Width of what `mix` returns."""
        positions = settings.mix_positions if settings.sources.needs_static else ()
        if settings.static_scale == "learned":
            num_places = 1 + (settings.embeddings == "static_output")
            self.gammas = nn.Parameter(torch.ones(num_places))
        if settings.embeddings == "static_projected":
            self.projections = nn.ModuleList(
                nn.Linear(self.dim, layers_dim, bias=False) for _ in positions
            )
        if positions:
            self.mix_dim = self.dim if self.projections is None else layers_dim
        self.dropout = nn.Dropout(settings.dropout or 0.0)
        self.reset_parameters(torch.Generator().manual_seed(0))

    @property
    def dim(self) -> int:
        """S."""
        return self.weight.shape[1]

    def set_vectors(self, vectors: StaticVectors) -> None:
        """Replace the vectors; the number of words may change."""
        values = torch.from_numpy(vectors.values)
        if "weight" in self._parameters:
            values = values.to(self.weight.device)
        self.weight = nn.Parameter(values, requires_grad=False)

    def reset_parameters(self, generator: torch.Generator) -> None:
        for projection in self.projections or ():
            weight = projection.get_parameter("weight")
            nn.init.normal_(weight, std=self.dim**-0.5, generator=generator)

    def forward(self, ids: Int[Tensor, "B W"], *, place: int = 0) -> Float[Tensor, "B W S"]:
        """Return the vectors of words, at the input by default; a word without one has zeros."""
        vectors = functional.embedding(ids, self.weight)
        return vectors if self.gammas is None else self.gammas[place] * vectors

    def mix(self, index: int, ids: Int[Tensor, "B W"]) -> Float[Tensor, "B W X"]:
        """Return what stands in the place of mixture number ``index``, with dropout."""
        if self.projections is None:
            return self.dropout(self(ids, place=1))
        return self.dropout(self.projections[index](self(ids)))

    @torch.no_grad()
    def scale_to(self, rms: float, samples: Sequence[Tensor]) -> None:
        """Set every γ so that the vectors of the words in ``samples`` have this root mean square.

        ``samples`` holds ids. Words without a vector do not count; if no word has one, nothing
        changes.
        """
        if self.gammas is None or not samples:
            return
        vectors = self.weight[torch.cat([ids.flatten() for ids in samples])]
        own_rms = vectors[vectors.any(dim=1)].square().mean().sqrt()
        if own_rms > 0:  # not NaN, which is the mean of nothing
            self.gammas.fill_(rms / own_rms)
