"""`elmokit vectors`: train static word vectors as a baseline for a biLM."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from elmokit.cli import options
from elmokit.cli.output import duration, emit_json
from elmokit.cli.progress import progress_bar
from elmokit.errors import InputError
from elmokit.wording import counted

if TYPE_CHECKING:
    from elmokit.vectors.training import VectorsReport


def vectors(
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS",
            help=f"{options.CORPUS_HELP}, or the shards of training runs (DIR/shards).",
        ),
    ],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE")],
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="MODEL")] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help=f"One of {options.TOKENIZERS}; default: as --model or the shards, or simple."
        ),
    ] = None,
    kind: Literal["skipgram", "cbow", "fasttext"] = "skipgram",
    dim: Annotated[int, typer.Option(min=1)] = 256,
    window: Annotated[int, typer.Option(min=1)] = 5,
    min_count: Annotated[int, typer.Option(min=1)] = 5,
    epochs: Annotated[int, typer.Option(min=1)] = 5,
    negative: Annotated[int, typer.Option(min=1)] = 5,
    buckets: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Annotated[
        int, options.seed_option("of initial vectors, windows and negative samples")
    ] = 0,
    threads: Annotated[int, typer.Option(min=1)] = 1,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Train static word vectors on a corpus, as a baseline for a model.

    Trains with gensim and writes FILE in word2vec format (fasttext to .bin: in fastText format);
    FILE.json records how it was made. With --model, the text is exactly what that model would be
    trained on. With one thread, the same seed gives the same vectors. Needs the extra `static`.

    Args:
        output: Output: .bin (binary), .txt or .vec (text).
        model: Tokenize and normalize like this model: its directory, or en or ko.
        kind: skipgram, cbow, or fasttext (skip-gram with character n-grams).
        dim: Vector dimensions.
        window: Maximum number of context words per side.
        min_count: Minimum occurrences of a word.
        epochs: Passes over the corpus.
        negative: Negative samples per target word.
        buckets: With --kind fasttext: hash buckets for character n-grams; default: 500,000.
        threads: CPU threads; results are reproducible only with 1.
    """
    from elmokit.vectors.training import VectorsConfig, train_vectors

    if buckets is not None and kind != "fasttext":
        raise InputError(f"--buckets is for --kind fasttext, not for {kind}.")
    config = VectorsConfig(
        kind=kind, dim=dim, window=window, min_count=min_count, epochs=epochs, negative=negative,
        seed=seed, **({} if buckets is None else {"buckets": buckets}),
    )  # fmt: skip
    with progress_bar("tokenizing") as update:
        report = train_vectors(
            corpus, output, config, model=model, tokenizer=tokenizer, threads=threads,
            overwrite=overwrite, on_progress=lambda stage, done, total: update(
                done, total=total, description=stage, status=counted(done, 'word')
            ),
        )  # fmt: skip
    if json:
        emit_json(report)
    else:
        _print(report)


def _print(report: "VectorsReport") -> None:
    tokenizer = report.tokenizer
    typer.echo(
        f"vectors        {report.path}: {counted(report.words, 'word')}, {report.dim} dimensions"
    )
    typer.echo(f"metadata       {report.metadata_path}")
    typer.echo(
        f"corpus         {counted(report.corpus_words, 'word')} in "
        f"{counted(report.corpus_sentences, 'sentence')}, "
        f"{report.coverage:.2%} of them with a vector"
    )
    typer.echo(f"tokenizer      {tokenizer.name} {tokenizer.version}, {report.normalization}")
    typer.echo(f"time           {duration(report.seconds)}")
