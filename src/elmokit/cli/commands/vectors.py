"""`elmokit vectors` and `distil`: static word vectors, trained on a corpus or made with a biLM."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, duration, progress_bar
from elmokit.errors import InputError, counted

CorpusArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="CORPUS",
        help=f"{options.CORPUS_HELP}, or the shards of a training run (DIR/shards).",
    ),
]
OutputOption = Annotated[Path, typer.Option("--output", "-o", metavar="FILE")]


def vectors(
    corpus: CorpusArgument,
    *,
    output: OutputOption,
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
    column: options.TextFieldOption = None,
    overwrite: bool = False,
) -> Result:
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
            corpus, output, config, model=model, tokenizer=tokenizer, column=column,
            threads=threads, overwrite=overwrite, on_progress=lambda stage, done, total: update(
                done, total=total, description=stage, status=counted(done, 'word')
            ),
        )  # fmt: skip
    tokenizer_used = report.tokenizer
    return Result(report, [
        f"vectors        {report.path}: {counted(report.words, 'word')}, {report.dim} dimensions",
        f"metadata       {report.metadata_path}",
        f"corpus         {counted(report.corpus_words, 'word')} in "
        f"{counted(report.corpus_sentences, 'sentence')}, "
        f"{report.coverage:.2%} of them with a vector",
        f"tokenizer      {tokenizer_used.name} {tokenizer_used.version}, {report.normalization}",
        f"time           {duration(report.seconds)}",
    ])  # fmt: skip


def distil(
    model: options.ModelArgument,
    corpus: CorpusArgument,
    *,
    output: OutputOption,
    layers: str = "average",
    state: str = "reset",
    min_count: Annotated[int, typer.Option(min=1)] = 5,
    max_words: Annotated[int, typer.Option(min=2)] = 100_000,
    remove: Annotated[int | None, typer.Option(min=0)] = None,
    column: options.TextFieldOption = None,
    overwrite: bool = False,
    threads: options.ThreadsOption = None,
) -> Result:
    """Write static word vectors: the mean of a word's vectors over a corpus.

    The means are centered and whitened, and each is multiplied by a weight by which rare words
    count more (SIF), so that a sentence can be compared by the plain mean of its words. Tables in
    .safetensors also hold the statistics, for `Embedder.embed_sentences(statistics=FILE)`.

    Args:
        output: Output: .safetensors, or .bin (word2vec, binary), .txt or .vec (text), beside which
            FILE.json records how it was made.
        state: LSTM state before each sentence: reset (zeros), carry (end of the previous sentence)
            or warm (one fixed state).
        max_words: Most words with a vector, the most frequent ones.
        remove: Remove so many leading components instead of whitening.
    """
    from elmokit.embed.distil import distil as make

    with progress_bar("embedding") as update:
        report = make(
            model, corpus, output, layers=options.layers_of(layers), state=state,
            min_count=min_count, max_words=max_words, remove=remove, column=column,
            overwrite=overwrite,
            on_progress=lambda done, total: update(done, total=total),
        )  # fmt: skip
    return Result(report, [
        f"vectors        {report.path}: {counted(report.words, 'word')}, {report.dim} dimensions",
        f"corpus         {counted(report.corpus_words, 'word')}, {report.coverage:.2%} of them "
        "with a vector",
        f"time           {duration(report.seconds)}",
    ])  # fmt: skip
