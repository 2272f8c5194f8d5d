"""`elmokit weights`: the layer weights that task models learned."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli.output import emit_json
from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.probes.layer_weights import LayerWeights


def weights(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN")],
    *,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png")] = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Show the layer weights that task models learned, as a table or a heat map.

    Prints softmax-normalized weights and gamma for each RUN and position of ELMo in its network.

    Args:
        runs: Directories written by `elmokit train`.
        plot: Also draw a heat map: .png, .pdf or .svg.
    """
    from elmokit.files.atomic import check_target
    from elmokit.probes.layer_weights import plot_layer_weights, read_layer_weights

    if plot is not None:
        check_target(plot, overwrite=overwrite)
    elif overwrite:
        raise InputError("--overwrite is for --plot: nothing else is written.")
    found = [read_layer_weights(run) for run in runs]
    if plot is not None:
        plot_layer_weights(found, plot)
    if json:
        emit_json({"runs": found, "plot": plot})
        return
    _print(found)
    if plot is not None:
        typer.echo(f"heat map: {plot}")


def _print(runs: "list[LayerWeights]") -> None:
    num_layers = max(len(mix.weights) for run in runs for mix in run.mixes)
    width = max(len(run.run) for run in runs)
    header = "".join(f"{f'layer {layer}':>9}" for layer in range(num_layers)) + f"{'gamma':>9}"
    typer.echo(f"{'run':<{width}}  {'task':<10}{'condition':<11}{'position':<10}{header}")
    for run in runs:
        for mix in run.mixes:
            shares = "".join(f"{share:9.3f}" for share in mix.weights)
            typer.echo(
                f"{run.run:<{width}}  {run.task:<10}{run.embeddings:<11}{mix.position:<10}"
                f"{shares:<{9 * num_layers}}{mix.gamma:9.3f}"
            )
