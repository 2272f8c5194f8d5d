"""`elmokit neighbors`: the occurrences of a word that a model considers similar."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.errors import InputError
from elmokit.wording import counted

if TYPE_CHECKING:
    from elmokit.probes.neighbors import Neighborhood


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
    json: bool = False,
) -> None:
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

    if sentence is None and any_word:
        raise InputError("--any-word needs --sentence: the occurrence whose neighbors to find.")
    if sentence is not None and show is not None:
        raise InputError("--show is for all occurrences in TEXT: --sentence has only its own.")
    found = neighbors_of_word(
        Embedder.load(model, device=device), text, word, sentence=sentence, any_word=any_word,
        layers=options.layers_of(layers), num_neighbors=num_neighbors, limit=limit,
        vectors=vectors, tokenizer=tokenizer, text_field=text_field,
    )  # fmt: skip
    if json:
        emit_json(found.as_dict())
        return
    occurrences = found.occurrences
    if sentence is None:
        at_limit = f" (as many as --limit {limit} allows)" if len(occurrences) == limit else ""
        counts = f"{counted(len(occurrences), 'occurrence')}{at_limit}"
        typer.echo(f"{found.word}: {counts}, {options.name_layers(found.layers)}")
        occurrences = spread(occurrences, show or 4)
    _print(occurrences, context)
    if found.static:
        near = ", ".join(f"{other} {cosine:.2f}" for other, cosine in found.static)
        typer.echo(f"\nstatic: {near}")


def _print(found: "Sequence[Neighborhood]", context: int) -> None:
    for one in found:
        typer.echo(f"\n{one.occurrence.marked(context=context)}")
        for other, similarity in zip(one.neighbors, one.similarities, strict=True):
            typer.echo(f"  {similarity:5.2f}  {other.marked(context=context)}")
