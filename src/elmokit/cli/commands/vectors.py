"""`elmokit vectors`: static word vectors of a corpus, to compare a biLM with."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from elmokit.cli.options import JsonOption
from elmokit.cli.output import emit_json, progress_bar
from elmokit.text.tokenizers.registry import describe_tokenizers

if TYPE_CHECKING:
    from elmokit.vectors.training import VectorsReport


def vectors(
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS",
            help="Raw text: .txt, .gz, .xz, .zst, .jsonl, .parquet, a folder; or the shards of a "
            "training run (DIR/shards).",
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write these vectors: .bin, or .txt for text."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="Tokenize and normalize as this model does: a model directory, or en or ko.",
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help=f"One of {describe_tokenizers()}; default: that of --model or of the shards, or "
            "else simple."
        ),
    ] = None,
    kind: Annotated[
        Literal["skipgram", "cbow", "fasttext"],
        typer.Option(help="skipgram, cbow, or fasttext (skip-gram with character n-grams)."),
    ] = "skipgram",
    dim: Annotated[int, typer.Option(help="Numbers in a vector.", min=1)] = 256,
    window: Annotated[int, typer.Option(help="Words looked at on each side, at most.", min=1)] = 5,
    min_count: Annotated[int, typer.Option(help="Words seen less often get no vector.", min=1)] = 5,
    epochs: Annotated[int, typer.Option(help="Passes over the corpus.", min=1)] = 5,
    negative: Annotated[
        int, typer.Option(help="Random words that each right one is told from.", min=1)
    ] = 5,
    buckets: Annotated[
        int, typer.Option(help="fasttext: rows that the character n-grams share.", min=1)
    ] = 500_000,
    seed: Annotated[int, typer.Option(help="Of all that is random.", min=0)] = 0,
    threads: Annotated[
        int,
        typer.Option(
            help="CPU threads; more than one is faster and gives other numbers each time.", min=1
        ),
    ] = 1,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace FILE if it exists.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Train static word vectors on CORPUS with gensim, and write them in word2vec's form.

    With --model its text is the very one that the model would be trained on. FILE.json says what
    made FILE. One thread and the same seed give the same vectors. Needs the extra static.
    """
    from elmokit.vectors.training import VectorsConfig, train_vectors

    config = VectorsConfig(
        kind=kind, dim=dim, window=window, min_count=min_count, epochs=epochs, negative=negative,
        buckets=buckets, seed=seed,
    )  # fmt: skip
    with progress_bar("tokenizing") as update:
        report = train_vectors(
            corpus,
            output,
            config,
            model=model,
            tokenizer=tokenizer,
            threads=threads,
            overwrite=overwrite,
            on_progress=lambda stage, done, total: update(
                done, total=total, description=stage, status=f"{done:,} words"
            ),
        )
    if json:
        emit_json(report)
    else:
        _print(report)


def _print(report: "VectorsReport") -> None:
    tokenizer = report.tokenizer
    typer.echo(f"vectors        {report.path}: {report.words:,} words, {report.dim} dimensions")
    typer.echo(f"made by        {report.facts_path}")
    typer.echo(
        f"corpus         {report.corpus_words:,} words in {report.corpus_sentences:,} sentences, "
        f"{report.coverage:.2%} of them with a vector"
    )
    typer.echo(f"tokenizer      {tokenizer.name} {tokenizer.version}, {report.normalization}")
    typer.echo(f"time           {report.seconds / 60:.1f} minutes")
