"""Which representations of a word a task model reads: what a user may set, and the paper's choice.

`InputsConfig` is what a user sets; what it leaves open is the task's own choice, which for our
tasks is that of the paper. `InputSettings` has nothing open: it is what a network is built from,
and what a run writes down.
"""

from dataclasses import dataclass, replace
from typing import Literal

EmbeddingKind = Literal["elmo", "static", "layer0", "random", "top", "average", "none"]
"""What stands for a word beside its characters.

``elmo``: a learned mixture of all layers, beside the static vector where there is one. ``static``:
the static vector alone. ``layer0``, ``top``: one layer. ``average``: the plain mean of the layers.
``random``: as ``elmo``, from a biLM that was never trained. ``none``: nothing. Static vectors stand
beside the layers in every condition with a biLM, if there are any.
"""
WITH_LAYERS: tuple[EmbeddingKind, ...] = ("elmo", "layer0", "random", "top", "average")
"""Conditions that need a biLM."""

Place = Literal["input", "output"]
"""Where a mixture of layers is read: beside the word vectors, or beside the first encoder's output.
"""
Places = Literal["input", "output", "both"]
"""A mixture at one place, or one at each."""

InputNorm = Literal["none", "token", "batch"]
"""Normalization of layers before they are mixed, as in `elmokit.bilm.scalar_mix`."""


@dataclass(frozen=True, kw_only=True)
class InputSettings:
    """What a task model reads at each word, with nothing left open.

    The defaults are those for a new task: ELMo at the input, dropout, a small pull of the layer
    weights towards the plain average.
    """

    embeddings: EmbeddingKind = "elmo"
    """The condition."""
    places: Places = "input"
    """Where mixtures of layers are read."""
    characters: bool = True
    """A small character CNN of the task's own (16-d characters, 128 filters of width 3)."""
    dropout: float = 0.5
    """Share of each mixture's values dropped in training."""
    layer_l2: float = 1e-3
    """λ on the layer weights (elmo, random)."""
    layer_norm: InputNorm = "none"
    """Normalization of the layers before they are mixed."""

    @property
    def has_layers(self) -> bool:
        """Whether a biLM is read."""
        return self.embeddings in WITH_LAYERS

    @property
    def mix_places(self) -> tuple[Place, ...]:
        """Where there is a mixture of layers."""
        if not self.has_layers:
            return ()
        return ("input", "output") if self.places == "both" else (self.places,)


@dataclass(frozen=True, kw_only=True)
class InputsConfig:
    """Which representations a task model reads, and how; none: as the paper does in this task."""

    embeddings: EmbeddingKind = "elmo"
    """The condition."""
    places: Places | None = None
    """Where mixtures of layers are read."""
    characters: bool | None = None
    """A small character CNN of the task's own. Left open, there is also one where nothing else
    would be read at the input."""
    dropout: float | None = None
    """Share of each mixture's values dropped in training."""
    layer_l2: float | None = None
    """λ on the layer weights (elmo, random)."""
    layer_norm: InputNorm | None = None
    """Normalization of the layers before they are mixed."""

    def __post_init__(self) -> None:
        """Refuse what cannot be built."""
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ValueError("`dropout` must be at least 0 and below 1")
        if self.layer_l2 is not None and self.layer_l2 < 0:
            raise ValueError("`layer_l2` must not be negative")

    def resolved(self, paper: InputSettings, *, with_static: bool) -> InputSettings:
        """Return these settings, and ``paper``'s where they are open.

        Args:
            paper: The task's own choice.
            with_static: Whether words have static vectors.
        """
        given = {name: value for name, value in vars(self).items() if value is not None}
        settings = replace(paper, **given)
        if self.characters is None and not with_static and "input" not in settings.mix_places:
            return replace(settings, characters=True)
        return settings
