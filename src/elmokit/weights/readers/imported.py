"""What a reader returns."""

from dataclasses import dataclass

from elmokit.weights.mix_file import TrainedMixes
from elmokit.weights.model_dir import PretrainedBiLM


@dataclass(frozen=True, kw_only=True)
class ImportedModel:
    """A model of other software."""

    model: PretrainedBiLM
    origin: str
    """The files that it was read from."""
    mixes: TrainedMixes | None = None
    """Mixtures of layers that were trained with it."""
    notes: tuple[str, ...] = ()
    """What was assumed or left out, a sentence each."""
