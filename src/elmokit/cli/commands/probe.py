"""`elmokit probe`: what the layers of a biLM know, without a task model."""

from dataclasses import fields
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmokit.cli.options import (
    JsonOption,
    LayerCacheOption,
    ModelOption,
    PrecisionOption,
    ThreadsOption,
    layers_of,
)
from elmokit.cli.output import emit_json, progress_bar, use_threads

if TYPE_CHECKING:
    from elmokit.probes.registry import Score

COLUMNS = {
    "pos": ("accuracy", "seen", "unseen"),
    "wsd": ("f1",),
    "neighbors": ("sense", "sense_chance", "pos", "pos_chance"),
    "wic": ("accuracy", "train_accuracy"),
}
"""Names of the probes, and the figures that their tables show."""
NOTES = {
    "pos": "percent of {num_words:,} words, {num_unseen:,} of them not in the training set",
    "wsd": "percent of {num_instances:,} words; {num_backed_off:,} got the first sense for want of "
    "their lemma in the corpus, {num_unanswered:,} none",
    "neighbors": "percent of the {k} nearest among the lemma's occurrences: {num_queries:,} words, "
    "{num_pos_queries:,} of them of lemmas with several parts of speech",
    "wic": "percent of {num_pairs:,} pairs, {num_not_found:,} of them not found by the tokenizer",
}
"""What stands under a table."""


def probe(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"{', '.join(COLUMNS)}.")],
    *,
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="pos, wic: train… and dev…; wsd, neighbors: semcor.")
    ],
    model: ModelOption = None,
    layers: Annotated[str, typer.Option(help="all, top, average or the number of one.")] = "all",
    random: Annotated[
        bool, typer.Option("--random", help="Also a biLM of the same shape, never trained.")
    ] = False,
    vectors: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also these static word vectors.")
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="SET", help="wsd: the test set, if DIR has several.")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Of --random, and of the sample of neighbors.", min=0)
    ] = 0,
    precision: PrecisionOption = "fp32",
    layer_cache: LayerCacheOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Probe every layer by itself; nothing but a linear classifier or a threshold is trained.

    pos: parts of speech by a linear classifier. wsd: word senses by the nearest centroid.
    neighbors: how many of an occurrence's 5 nearest have its sense and its part of speech.
    wic: whether a word means the same in two texts.
    """
    from elmokit.probes.registry import run_probe

    use_threads(threads)
    done = count(1)
    with progress_bar("sentences") as update:
        scores = run_probe(
            name,
            data,
            model,
            layers=layers_of(layers),
            random=random,
            vectors=vectors,
            test=test,
            seed=seed,
            precision=precision,
            cache_dir=layer_cache,
            on_sentence=lambda: update(next(done)),
        )
    if json:
        emit_json({"probe": name, "scores": [_plain(score) for score in scores]})
        return
    columns = COLUMNS[name]
    typer.echo(" " * 20 + "".join(f"{column.replace('_', ' '):>16}" for column in columns))
    for score in scores:
        figures = "".join(f"{getattr(score, column):16.2f}" for column in columns)
        typer.echo(f"{score.name:<20}{figures}")
    typer.echo(NOTES[name].format(**_plain(scores[-1])))


def _plain(score: "Score") -> dict[str, Any]:
    """Return the figures of a score, without the counts of every example."""
    return {one.name: getattr(score, one.name) for one in fields(score) if one.repr}
