"""Which representations of a word a task model reads: what a user sets, and what is left open.

What a user leaves open is the task's own choice, which for our tasks is that of the paper, and else
`NEW_TASK_INPUTS`. `InputSettings.resolved` fills it in; that is what a network is built from, and
what a run writes down.
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

MixPosition = Literal["input", "output"]
"""Where a mixture of layers is read: beside the word vectors, or beside the first encoder's output.
"""
MixPositions = Literal["input", "output", "both"]
"""A mixture at one position, or one at each."""

InputNorm = Literal["none", "token", "batch"]
"""Normalization of layers before they are mixed, as in `elmokit.bilm.scalar_mix`."""


@dataclass(frozen=True, kw_only=True)
class InputSettings:
    """Which representations a task model reads, and how; none: the task's own choice."""

    embeddings: EmbeddingKind = "elmo"
    """The condition."""
    positions: MixPositions | None = None
    """Where mixtures of layers are read."""
    characters: bool | None = None
    """A small character CNN of the task's own (16-d characters, 128 filters of width 3). Left open,
    there is also one where nothing else would be read at the input."""
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

    @property
    def has_layers(self) -> bool:
        """Whether a biLM is read."""
        return self.embeddings in WITH_LAYERS

    @property
    def mix_positions(self) -> tuple[MixPosition, ...]:
        """Where there is a mixture of layers."""
        if not self.has_layers or self.positions is None:
            return ()
        return ("input", "output") if self.positions == "both" else (self.positions,)

    def resolved(
        self, paper: "InputSettings | None" = None, *, with_static: bool
    ) -> "InputSettings":
        """Return these settings with nothing left open.

        Args:
            paper: The task's own choice; what that leaves open is `NEW_TASK_INPUTS`.
            with_static: Whether words have static vectors.
        """
        settings = NEW_TASK_INPUTS
        for chosen in (paper, self):
            given = {} if chosen is None else vars(chosen)
            settings = replace(settings, **{n: v for n, v in given.items() if v is not None})
        if self.characters is None and not with_static and "input" not in settings.mix_positions:
            return replace(settings, characters=True)
        return settings


NEW_TASK_INPUTS = InputSettings(
    positions="input", characters=True, dropout=0.5, layer_l2=1e-3, layer_norm="none"
)
"""For a new task: ELMo at the input, dropout, a small pull of the layer weights towards the plain
average."""
