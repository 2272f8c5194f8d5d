"""The layer weights that task models learned, as numbers and as a heat map.

Source: Peters et al. 2018, section 5.6 and figure 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError, InputError
from elmokit.tasks.inputs.settings import MixPosition
from elmokit.tasks.runs.run_dir import (
    WEIGHTS_FILE,
    input_settings_of,
    read_metadata,
    read_weights,
)
from elmokit.training.curves import check_picture_name, new_figure, write_picture
from elmokit.weights.locate import TASK_RUNS
from elmokit.weights.model_files import mix_shares

POSITIONS: tuple[MixPosition, ...] = ("input", "output")
"""Where a task model can use the mixture."""


@dataclass(frozen=True, kw_only=True)
class MixWeights:
    """The mixture at one position."""

    position: MixPosition
    weights: tuple[float, ...]
    """Share of each layer, token layer first; they sum to 1."""
    gamma: float


@dataclass(frozen=True, kw_only=True)
class LayerWeights:
    """The mixtures of one task run."""

    run: str
    task: str
    embeddings: str
    mixes: tuple[MixWeights, ...]
    model_hash: str | None = None
    elmokit_version: str | None = None


def read_layer_weights(run_dir: Path | str) -> LayerWeights:
    """Return the learned weights of a run of `elmokit train`, or of a packaged one."""
    run_dir = TASK_RUNS.find(run_dir)
    metadata = read_metadata(run_dir)
    settings = input_settings_of(metadata, run_dir)
    if settings.sources.layers != "mix":
        raise InputError(
            f"{run_dir} was trained with --embeddings {settings.embeddings}, which learns no layer "
            "weights. Train the task with --embeddings elmo."
        )
    tensors = read_weights(run_dir)
    # a run has a mixture for each position where its task reads the layers, in this order
    mixes = []
    for index, position in enumerate(settings.mix_positions):
        name = f"inputs.mixes.scalar_mixes.{index}"
        weights, gamma = tensors.get(f"{name}.mix_weights"), tensors.get(f"{name}.gamma")
        if weights is not None and gamma is not None:
            shares = tuple(mix_shares(weights.astype(np.float64)).tolist())
            mixes.append(MixWeights(position=position, weights=shares, gamma=float(gamma)))
    if not mixes:
        raise FormatError(f"{run_dir / WEIGHTS_FILE} has no layer weights. Train the task again.")
    return LayerWeights(
        run=run_dir.resolve().name, task=metadata["config"]["task"], embeddings=settings.embeddings,
        mixes=tuple(mixes), model_hash=(metadata["bilm"] or {}).get("model_hash"),
        elmokit_version=metadata.get("elmokit_version"),
    )  # fmt: skip


def plot_layer_weights(runs: Sequence[LayerWeights], path: Path) -> None:
    """Draw a heat map: a column per run, a row per layer, a panel per position."""
    check_picture_name(path)
    num_layers = max(len(mix.weights) for run in runs for mix in run.mixes)
    by_position: dict[MixPosition, np.ndarray] = {}  # (layers, runs)
    for position in POSITIONS:
        for column, run in enumerate(runs):
            for mix in run.mixes:
                if mix.position == position:
                    empty = np.full((num_layers, len(runs)), np.nan)
                    shares = by_position.setdefault(position, empty)
                    shares[: len(mix.weights), column] = mix.weights
    width = 1.6 + len(by_position) * (0.8 + 0.7 * len(runs))
    figure = new_figure(width, 1.6 + 0.6 * num_layers)
    all_axes = figure.subplots(1, len(by_position), squeeze=False)[0]
    image = None
    for axes, (position, shares) in zip(all_axes, by_position.items(), strict=True):
        image = axes.imshow(shares, vmin=0, vmax=1, cmap="viridis", aspect="auto")
        for (row, column), share in np.ndenumerate(shares):
            if not np.isnan(share):
                color = "black" if share > 0.6 else "white"
                axes.text(column, row, f"{share:.2f}", ha="center", va="center", color=color)
        axes.set_title(position)
        axes.set_xticks(range(len(runs)), _labels(runs), rotation=30, ha="right", parse_math=False)
        axes.set_yticks(range(num_layers), [f"layer {layer}" for layer in range(num_layers)])
    figure.colorbar(image, ax=list(all_axes), label="share of the mixture")
    write_picture(figure, path)


def _labels(runs: Sequence[LayerWeights]) -> list[str]:
    """Return the task names if they are distinct, else the run names, in ASCII."""
    tasks = [run.task for run in runs]
    labels = tasks if len(set(tasks)) == len(tasks) else [run.run for run in runs]
    return [label.encode("ascii", "backslashreplace").decode() for label in labels]
