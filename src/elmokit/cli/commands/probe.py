"""`elmokit neighbors`, `probe` and `weights`: what layers know, and which of them tasks use."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, check_output, progress_bar
from elmokit.errors import InputError, counted
from elmokit.probes.registry import describe_probes, find_probe


def probe(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"{describe_probes()}.")],
    *,
    data: Annotated[Path, typer.Option(metavar="DIR")],
    model: options.ModelOption = None,
    layers: str = "all",
    precision: str = "fp32",
    random: bool = False,
    vectors: Path | None = None,
    test: Annotated[str | None, typer.Option(metavar="SET")] = None,
    units: str | None = None,
    seed: Annotated[int, options.seed_option("of --random and of samples")] = 0,
    state: str = "reset",
    device: str = "auto",
    threads: options.ThreadsOption = None,
) -> Result:
    """Measure what each layer of a model knows, without a task model.

    Trains at most a linear classifier.

    Args:
        layers: all, top, average, or a layer number (0 is the token layer).
        data: Data directory; an error names missing files.
        random: Also probe an untrained biLM of the same shape.
        test: wsd: name of the test set if --data has several, such as semeval2007.
        units: pos: words or morphemes; default: the units of the model's tokenizer.
    """
    from elmokit.metrics.bootstrap import CONFIDENCE
    from elmokit.probes.probe import plain_score, run_probe, training_gains

    probe_used, done = find_probe(name), count(1)
    with progress_bar("sentences") as update:
        result = run_probe(
            name, data, model, layers=options.layers_of(layers), random=random, vectors=vectors,
            test=test, units=units, seed=seed, state=state, device=device, precision=precision,
            on_sentence=lambda: update(next(done)),
        )  # fmt: skip
    plain = [plain_score(score) for score in result.scores]
    counts = {score.name: [getattr(score, probe_used.counts)] for score in result.scores}
    gains = training_gains(probe_used, counts)
    report: dict[str, Any] = {"probe": name, "scores": plain, "gains": [asdict(g) for g in gains]}
    lines = list(_table(probe_used, plain))
    if gains:
        lines.append(f"\ntrained minus untrained, with confidence intervals ({CONFIDENCE:.0%}):")
    for gain in gains:
        title = probe_used.columns[gain.figure]
        lines.append(f"{gain.name:<20}{title:<22}{gain.difference:+7.2f} {gain.interval}")
    return Result({**report, "metadata": result.metadata}, lines)


def _table(probe: Any, scores: list[dict[str, Any]]) -> Iterator[str]:
    shown = {
        column: title.strip()
        for column, title in probe.columns.items()
        if any(isinstance(score[column], float) for score in scores)
    }
    widths = {column: max(12, len(title) + 2) for column, title in shown.items()}
    yield " " * 20 + "".join(f"{title:>{widths[column]}}" for column, title in shown.items())
    for score in scores:
        cells = (
            f"{'–' if score[column] is None else f'{score[column]:.2f}':>{width}}"
            for column, width in widths.items()
        )
        yield f"{score['name']:<20}{''.join(cells)}"
    yield probe.note.format(**scores[-1])


def weights(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN")],
    *,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png")] = None,
    overwrite: bool = False,
) -> Result:
    """Show the layer weights that task models learned, as a table or a heat map.

    Prints softmax-normalized weights and gamma for each RUN and position of ELMo in its network.

    Args:
        runs: Directories written by `elmokit train`.
        plot: Also draw a heat map: .png, .pdf or .svg.
    """
    from elmokit.probes.layer_weights import plot_layer_weights, read_layer_weights

    check_output(plot, overwrite=overwrite, option="--plot")
    weights = [read_layer_weights(run) for run in runs]
    if plot is not None:
        plot_layer_weights(weights, plot)
    num_layers = max(len(mix.weights) for run in weights for mix in run.mixes)
    width = max(len(run.run) for run in weights)
    header = "".join(f"{f'layer {layer}':>9}" for layer in range(num_layers)) + f"{'gamma':>9}"
    lines = [f"{'run':<{width}}  {'task':<10}{'condition':<11}{'position':<10}{header}"]
    for run in weights:
        for mix in run.mixes:
            shares = "".join(f"{share:9.3f}" for share in mix.weights)
            lines.append(
                f"{run.run:<{width}}  {run.task:<10}{run.embeddings:<11}{mix.position:<10}"
                f"{shares:<{9 * num_layers}}{mix.gamma:9.3f}"
            )
    if plot is not None:
        lines.append(f"heat map: {plot}")
    return Result({"runs": weights, "plot": plot}, lines)


def neighbors(
    text: options.TextArgument,
    *,
    word: Annotated[str, typer.Option(metavar="WORD")],
    sentence: str | None = None,
    any_word: bool = False,
    model: options.ModelOption = None,
    layers: str = "top",
    num_neighbors: Annotated[int, typer.Option("--neighbors", "-k", min=1)] = 3,
    limit: Annotated[int, typer.Option(min=1)] = 1000,
    show: Annotated[int | None, typer.Option(min=1)] = None,
    context: Annotated[int, typer.Option(min=0)] = 8,
    vectors: Path | None = None,
    text_field: options.TextFieldOption = None,
    tokenizer: str | None = None,
    device: str = "auto",
    threads: options.ThreadsOption = None,
) -> Result:
    """Show which occurrences of a word have the most similar vectors.

    Occurrences of WORD in TEXT are compared by the cosine of their mean-centered vectors; with only
    two occurrences, or with --any-word, by the plain cosine. The occurrences shown range from those
    with the nearest neighbors to those with the farthest. With --vectors, the static neighbors of
    WORD follow.

    Args:
        word: The word itself; if the tokenizer splits it, all its parts.
        sentence: Show only the neighbors of WORD in this sentence.
        any_word: With --sentence: allow other words as neighbors.
        num_neighbors: Neighbors per occurrence.
        limit: Compare at most this many sentences that contain WORD.
        show: Without --sentence: occurrences of WORD to show; default: 4.
        context: Context words per side; --json prints full sentences.
    """
    from elmokit.embed.embedder import Embedder
    from elmokit.probes.neighbors import neighbors_of_word, spread

    if sentence is not None and show is not None:
        raise InputError("--show is for all occurrences in TEXT: --sentence has only its own.")
    if any_word and sentence is None:
        raise InputError("--any-word needs --sentence: the occurrence whose neighbors to find.")
    found = neighbors_of_word(
        Embedder.load(model, device=device), text, word, sentence=sentence, any_word=any_word,
        layers=options.layers_of(layers), num_neighbors=num_neighbors, limit=limit,
        vectors=vectors, tokenizer=tokenizer, text_field=text_field,
    )  # fmt: skip
    occurrences, lines = found.occurrences, []
    if sentence is None:
        at_limit = f" (as many as --limit {limit} allows)" if len(occurrences) == limit else ""
        counts = f"{counted(len(occurrences), 'occurrence')}{at_limit}"
        lines.append(f"{found.word}: {counts}, {options.name_layers(found.layers)}")
        occurrences = spread(occurrences, show or 4)
    for near in occurrences:
        lines.append(f"\n{near.occurrence.marked(context=context)}")
        lines += [
            f"  {similarity:5.2f}  {other.marked(context=context)}"
            for other, similarity in zip(near.neighbors, near.similarities, strict=True)
        ]
    if found.static:
        lines.append(f"\nstatic: {', '.join(f'{word} {cos:.2f}' for word, cos in found.static)}")
    return Result(found.as_dict(), lines)
