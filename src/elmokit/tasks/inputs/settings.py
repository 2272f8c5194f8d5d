"""Which representations of a word a task model reads.

Settings left open default to the task's own (for our tasks the paper's), then to `NEW_TASK_INPUTS`.
Networks are built from, and runs record, what `InputSettings.resolved` returns.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple

from elmokit.bilm.config import CharCNNConfig, LayerChoice
from elmokit.errors import Bounds, CheckedFields
from elmokit.inference.layers_and_states import StartState
from elmokit.tasks.registry import EmbeddingKind


class ConditionInputs(NamedTuple):
    """What a condition reads."""

    layers: LayerChoice | None = None  # of a biLM, and how they become one vector
    needs_bilm: bool = False  # for its layers, or for their width
    needs_static: bool = False


CONDITION_INPUTS: dict[EmbeddingKind, ConditionInputs] = {
    "elmo": ConditionInputs("mix", needs_bilm=True),
    "static": ConditionInputs(needs_static=True),
    "static_output": ConditionInputs(needs_static=True),
    "static_projected": ConditionInputs(needs_bilm=True, needs_static=True),
    "layer0": ConditionInputs("layer0", needs_bilm=True),
    "random": ConditionInputs("mix", needs_bilm=True),
    "top": ConditionInputs("top", needs_bilm=True),
    "average": ConditionInputs("average", needs_bilm=True),
    "none": ConditionInputs(),
}

MixPosition = Literal["input", "output"]
"""Where a mixture is read: next to the word vectors or to the first encoder's output."""
MixPositions = Literal["input", "output", "both"]

CHARACTER_CNN = CharCNNConfig(embedding_dim=16, filters=((3, 128),), num_highway=0)
"""The character CNN of a task's own."""

UNRECORDED = {"state": "reset", "static_scale": "given"}
"""What the settings were that runs of earlier versions do not record."""


@dataclass(frozen=True, kw_only=True)
class InputSettings(CheckedFields):
    """Which representations a task model reads, and how; none: the task's default."""

    embeddings: EmbeddingKind = "elmo"
    """The condition."""
    positions: MixPositions | None = None
    """Where mixtures of layers are read."""
    characters: bool | None = None
    """A character CNN of the task's own (16-d characters, 128 filters of width 3). If left open,
    it is also used when nothing else would be read at the input."""
    dropout: Annotated[float, Bounds(0.0, math.nextafter(1.0, 0.0))] | None = None
    """Dropout of each mixture."""
    layer_l2: Annotated[float, Bounds(0.0, math.inf)] | None = None
    """λ on the layer weights (elmo, random)."""
    layer_norm: Literal["none", "token", "batch"] | None = None
    """Normalization of the layers before they are mixed, as in `elmokit.bilm.scalar_mix`."""
    state: StartState = "reset"
    """What the biLM starts every sentence from: zeros, or the warm state."""
    static_scale: Literal["given", "learned"] = "given"
    """Scale of static vectors: that of their file, or a learned γ that starts where they are as
    large as a mixture."""

    @property
    def sources(self) -> ConditionInputs:
        return CONDITION_INPUTS[self.embeddings]

    @property
    def has_layers(self) -> bool:
        return self.sources.layers is not None

    @property
    def mix_positions(self) -> tuple[MixPosition, ...]:
        """Positions of the mixtures, or of the static vectors in their place, input first."""
        if self.embeddings == "static_output":
            return () if self.positions == "input" else ("output",)
        if not self.sources.needs_bilm or self.positions is None:
            return ()
        return ("input", "output") if self.positions == "both" else (self.positions,)

    def resolved(
        self, paper: "InputSettings | None" = None, *, with_static: bool
    ) -> "InputSettings":
        """Return complete settings: these, then the task's (``paper``), then the defaults."""
        settings = NEW_TASK_INPUTS
        for source in (paper or InputSettings(), self):
            open_fields = {name for name, value in vars(source).items() if value is None}
            settings = replace(source, **{name: getattr(settings, name) for name in open_fields})
        # Runs which do the same have the same settings: what has no effect is the default.
        if not self.has_layers:
            settings = replace(settings, state="reset")
        if not with_static or self.embeddings == "none":
            settings = replace(settings, static_scale="given")
        if self.characters is None and not with_static and "input" not in settings.mix_positions:
            return replace(settings, characters=True)
        return settings


NEW_TASK_INPUTS = InputSettings(
    positions="input", characters=True, dropout=0.5, layer_l2=1e-3, layer_norm="none"
)
"""For a new task: ELMo at the input, and a small pull of its weights towards the plain average."""
