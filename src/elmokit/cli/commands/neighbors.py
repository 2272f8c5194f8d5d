"""`elmokit neighbors`: the occurrences of a word that a model considers similar."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.cli.threads import choose_threads
from elmokit.errors import InputError
from elmokit.files.location import counted

if TYPE_CHECKING:
    from elmokit.probes.neighbors import Layers, Neighborhood

log = logging.getLogger(__name__)

STATIC_NEIGHBORS = 10


def neighbors(
    text: options.TextArgument,
    *,
    word: Annotated[
        str,
        typer.Option(metavar="WORD", help="The word; if the tokenizer splits it, all its parts."),
    ],
    sentence: Annotated[
        str | None, typer.Option(help="Show only the neighbors of WORD in this sentence.")
    ] = None,
    any_word: Annotated[
        bool, typer.Option("--any-word", help="With --sentence: allow other words as neighbors.")
    ] = False,
    model: options.ModelOption = None,
    layers: options.OneLayerOption = "top",
    num_neighbors: Annotated[
        int, typer.Option("--neighbors", "-k", help="Neighbors per occurrence.", min=1)
    ] = 3,
    limit: Annotated[
        int, typer.Option(help="Compare at most this many sentences that contain WORD.", min=1)
    ] = 1000,
    show: Annotated[
        int, typer.Option(help="Without --sentence: occurrences of WORD to show.", min=1)
    ] = 4,
    context: Annotated[
        int, typer.Option(help="Context words per side; --json prints full sentences.", min=0)
    ] = 8,
    vectors: options.VectorsOption = None,
    tokenizer: options.OtherTokenizerOption = None,
    device: options.DeviceOption = "auto",
    threads: options.ThreadsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Show which occurrences of a word have the most similar vectors.

    Occurrences of WORD in TEXT are compared by the cosine of their mean-centered vectors; with only
    two occurrences, or with --any-word, by the plain cosine. The occurrences shown range from those
    with the nearest neighbors to those with the farthest. With --vectors, the static neighbors of
    WORD follow.
    """
    from elmokit.corpus.readers import read_sentences
    from elmokit.embed.embedder import Embedder
    from elmokit.probes.neighbors import (
        find_neighbors,
        nearest_occurrences,
        nearest_words,
        occurrence_in,
        spread,
    )
    from elmokit.text.normalization import normalize
    from elmokit.text.tokenizers.registry import (
        build_tokenizer,
        tokenizer_for_model,
        tokenizer_metadata,
    )
    from elmokit.vectors.static_vectors import UNKNOWN_ID
    from elmokit.vectors.vector_files import read_vectors

    if sentence is None and any_word:
        raise InputError("--any-word needs --sentence: the occurrence whose neighbors to find.")
    choose_threads(threads)
    embedder = Embedder.load(model, device=device)
    chosen = _check_layers(layers, embedder.num_layers)
    splitter = build_tokenizer(tokenizer_for_model(embedder.tokenizer_config, tokenizer))
    form = embedder.normalization
    word = normalize(word, form)
    parts = splitter.tokenize(word)
    if not parts:
        raise InputError("--word is empty.")
    if parts != [word]:
        log.info(
            "the tokenizer %s writes %r as %d tokens: %r",
            splitter.name, word, len(parts), " ".join(parts),
        )  # fmt: skip
    query = None
    if sentence is not None:
        query = occurrence_in(splitter.tokenize(normalize(sentence, form)), parts)
    static = []
    if vectors is not None:
        read = read_vectors(vectors)
        if read.id_of(word) == UNKNOWN_ID:  # fastText makes one of n-grams
            read = read.extended(read_vectors(vectors, only=[word]))
        if read.id_of(word) == UNKNOWN_ID:
            log.warning("%s has no vector for %r: no static neighbors", vectors, word)
        else:
            static = nearest_words(read, word, num_neighbors=STATIC_NEIGHBORS)
    sentences = read_sentences(text, splitter, normalization=form)
    how: dict[str, Any] = {"layers": chosen, "num_neighbors": num_neighbors}
    if query is not None and any_word:
        found = [nearest_occurrences(embedder, query, sentences, **how)]
    else:
        found = find_neighbors(embedder, sentences, parts, query=query, limit=limit, **how)
    if json:
        emit_json({
            "word": word, "parts": parts, "layers": chosen,
            "occurrences": [_as_json(one) for one in found],
            "static": [{"word": other, "similarity": cosine} for other, cosine in static],
            "metadata": embedder.metadata(layers=chosen)
            | {"tokenizer": tokenizer_metadata(splitter)},
        })  # fmt: skip
        return
    if query is None:
        at_limit = f" (as many as --limit {limit} allows)" if len(found) == limit else ""
        counts = f"{counted(len(found), 'occurrence')}{at_limit}"
        typer.echo(f"{word}: {counts}, {options.name_layers(chosen)}")
    _print(found if query is not None else spread(found, show), context)
    if static:
        typer.echo(f"\nstatic: {', '.join(f'{other} {cosine:.2f}' for other, cosine in static)}")


def _check_layers(text: str, num_layers: int) -> "Layers":
    from elmokit.inference.results import check_layers

    if text == "all":
        raise InputError("Neighbors need one vector per word: --layers top, average or a number.")
    return check_layers(options.layers_of(text), num_layers)  # pyright: ignore[reportReturnType]


def _as_json(found: "Neighborhood") -> dict[str, Any]:
    return {
        "tokens": found.occurrence.tokens,
        "index": found.occurrence.index,
        "num_tokens": found.occurrence.num_tokens,
        "neighbors": [
            {"tokens": other.tokens, "index": other.index, "similarity": similarity}
            for other, similarity in zip(found.neighbors, found.similarities, strict=True)
        ],
    }


def _print(found: "Sequence[Neighborhood]", context: int) -> None:
    for one in found:
        typer.echo(f"\n{one.occurrence.marked(context=context)}")
        for other, similarity in zip(one.neighbors, one.similarities, strict=True):
            typer.echo(f"  {similarity:5.2f}  {other.marked(context=context)}")
