"""What trained task models made of the layers: the learned weights, as numbers and as a picture.

Source: Peters et al. 2018, section 5.6 and figure 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError, InputError, MissingExtraError
from elmokit.files.atomic import atomic_file
from elmokit.tasks.inputs.settings import EmbeddingKind, Place
from elmokit.tasks.runs.run_dir import CONFIG_FILE, WEIGHTS_FILE, read_facts, read_weights

LEARNING_CONDITIONS: tuple[EmbeddingKind, ...] = ("elmo", "random")
"""Conditions of `elmokit train` that learn layer weights."""
PLACES: tuple[Place, ...] = ("input", "output")
"""Of use in a task model."""
PICTURE_SUFFIXES = (".png", ".pdf", ".svg")
_MIX, _GAMMA = "inputs.mixes.{}.mix_weights", "inputs.mixes.{}.gamma"


@dataclass(frozen=True, kw_only=True)
class PlaceWeights:
    """The mixture for one place of use."""

    place: Place
    weights: tuple[float, ...]
    """Share of each layer, from the token layer on; they sum to 1."""
    gamma: float
    """Scale of the whole."""


@dataclass(frozen=True, kw_only=True)
class LayerWeights:
    """The mixtures of one task run."""

    run: str
    """Name of its directory."""
    task: str
    embeddings: str
    """The condition, one of `LEARNING_CONDITIONS`."""
    places: tuple[PlaceWeights, ...]


def read_layer_weights(run_dir: Path) -> LayerWeights:
    """Return the learned weights of a task run.

    Args:
        run_dir: As `elmokit train` wrote it.

    Raises:
        FileNotFoundError: if there is no such run.
        FormatError: if it is damaged.
        InputError: if its condition learns no layer weights.
    """
    config = read_facts(run_dir)["config"]
    try:
        task, condition = config["task"], config["inputs"]["embeddings"]
    except (KeyError, TypeError) as error:
        raise FormatError(
            f"{run_dir / CONFIG_FILE} does not say which task was trained on what: {error}. Train "
            "the task again."
        ) from error
    if condition not in LEARNING_CONDITIONS:
        raise InputError(
            f"{run_dir} was trained with --embeddings {condition}, which learns no layer weights. "
            "Train the task with --embeddings elmo."
        )
    tensors = read_weights(run_dir)
    places = []
    for place in PLACES:
        if _MIX.format(place) in tensors and _GAMMA.format(place) in tensors:
            shares = tensors[_MIX.format(place)].double().softmax(dim=0)
            gamma = float(tensors[_GAMMA.format(place)])
            places.append(PlaceWeights(place=place, weights=tuple(shares.tolist()), gamma=gamma))
    if not places:
        raise FormatError(f"{run_dir / WEIGHTS_FILE} has no layer weights. Train the task again.")
    return LayerWeights(
        run=run_dir.resolve().name, task=task, embeddings=condition, places=tuple(places)
    )


def plot_layer_weights(runs: Sequence[LayerWeights], path: Path) -> None:
    """Draw a heat map: a column a run, a row a layer, a panel a place of use.

    Args:
        runs: One or more.
        path: The picture, .png, .pdf or .svg.

    Raises:
        InputError: if there is no run, or the path has another ending.
        MissingExtraError: without matplotlib.
    """
    if not runs:
        raise InputError("`runs` must hold one run or more, got none.")
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        raise InputError(f"A picture ends in {', '.join(PICTURE_SUFFIXES)}, got {path.name!r}.")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", extra="plots") from error
    panels = [place for place in PLACES if any(_weights_at(run, place) for run in runs)]
    num_layers = max(len(one.weights) for run in runs for one in run.places)
    figure = Figure(
        figsize=(1.6 + len(panels) * (0.8 + 0.7 * len(runs)), 1.6 + 0.6 * num_layers),
        layout="constrained",
    )
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    image = None
    for axes, place in zip(all_axes, panels, strict=True):
        shares = np.full((num_layers, len(runs)), np.nan)
        for column, run in enumerate(runs):
            weights = _weights_at(run, place)
            shares[: len(weights), column] = weights
        image = axes.imshow(shares, vmin=0, vmax=1, cmap="viridis", aspect="auto")
        for (row, column), share in np.ndenumerate(shares):
            if not np.isnan(share):
                color = "black" if share > 0.6 else "white"
                axes.text(column, row, f"{share:.2f}", ha="center", va="center", color=color)
        axes.set_title(place)
        axes.set_xticks(range(len(runs)), _labels(runs), rotation=30, ha="right", parse_math=False)
        axes.set_yticks(range(num_layers), [f"layer {layer}" for layer in range(num_layers)])
    assert image is not None
    figure.colorbar(image, ax=list(all_axes), label="share of the mixture")
    with atomic_file(path) as temp_path:
        figure.savefig(temp_path, format=path.suffix.lower()[1:], dpi=150)


def _weights_at(run: LayerWeights, place: str) -> tuple[float, ...]:
    return next((one.weights for one in run.places if one.place == place), ())


def _labels(runs: Sequence[LayerWeights]) -> list[str]:
    """Return the tasks where these tell the runs apart, else the runs' names, for any font."""
    tasks = [run.task for run in runs]
    labels = tasks if len(set(tasks)) == len(tasks) else [run.run for run in runs]
    return [label.encode("ascii", "backslashreplace").decode() for label in labels]
