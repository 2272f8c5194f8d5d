"""`elmokit probe`: what the layers of a biLM know, without a task model."""

from dataclasses import fields
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.cli.progress import progress_bar
from elmokit.cli.threads import choose_threads
from elmokit.probes.registry import describe_probes, find_probe


def probe(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"{describe_probes()}.")],
    *,
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="Data directory; an error names missing files.")
    ],
    model: options.ModelOption = None,
    layers: options.LayersOption = "all",
    precision: options.PrecisionOption = "fp32",
    random: Annotated[
        bool, typer.Option("--random", help="Also probe an untrained biLM of the same shape.")
    ] = False,
    vectors: options.VectorsOption = None,
    test: Annotated[
        str | None, typer.Option(metavar="SET", help="Test set to use if DIR has several.")
    ] = None,
    units: Annotated[
        str | None,
        typer.Option(help="pos: words or morphemes; default: the units of the model's tokenizer."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed for --random and for samples.", min=0)] = 0,
    device: options.DeviceOption = "auto",
    layer_cache: options.LayerCacheOption = None,
    threads: options.ThreadsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Measure what each layer of a model knows, without a task model.

    Trains at most a linear classifier or a threshold.
    """
    from elmokit.probes.probe import run_probe

    choose_threads(threads)
    done = count(1)
    with progress_bar("sentences") as update:
        scores = run_probe(
            name, data, model, layers=options.layers_of(layers), random=random, vectors=vectors,
            test=test, units=units, seed=seed, device=device, precision=precision,
            cache_dir=layer_cache,
            on_sentence=lambda: update(next(done)),
        )  # fmt: skip
    if json:
        emit_json({"probe": name, "scores": [_plain(score) for score in scores]})
        return
    _print(name, [_plain(score) for score in scores])


def _plain(score: Any) -> dict[str, Any]:
    """Return the numbers of a score, without the counts per example."""
    return {one.name: getattr(score, one.name) for one in fields(score) if one.repr}


def _print(name: str, scores: list[dict[str, Any]]) -> None:
    probe = find_probe(name)
    columns = {
        name: title for name, title in probe.columns.items() if isinstance(scores[0][name], float)
    }
    typer.echo(" " * 20 + "".join(f"{title.strip():>20}" for title in columns.values()))
    for score in scores:
        typer.echo(f"{score['name']:<20}" + "".join(f"{score[field]:20.2f}" for field in columns))
    typer.echo(probe.note.format(**scores[-1]))
