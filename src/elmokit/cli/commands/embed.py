"""`elmokit embed`: contextual vectors of text files, into one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli.options import (
    DeviceOption,
    JsonOption,
    ModelOption,
    OtherTokenizerOption,
    PrecisionOption,
    ThreadsOption,
    layers_of,
)
from elmokit.cli.output import emit_json, progress_bar
from elmokit.errors import InputError, as_input_error

if TYPE_CHECKING:
    from elmokit.embed.job import EmbedReport


def embed(
    texts: Annotated[
        list[str],
        typer.Argument(metavar="TEXT", help="Text files (also .gz, .xz): one sentence a line."),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="OUT", help="File to write: .h5, .parquet or .npz."),
    ],
    model: ModelOption = None,
    layers: Annotated[
        str, typer.Option(help="all, top, average or the number of one layer (0: token layer).")
    ] = "all",
    precision: PrecisionOption = "fp32",
    dtype: Annotated[str, typer.Option(help="Numbers in the file: float32 or float16.")] = (
        "float32"
    ),
    format_: Annotated[
        str, typer.Option("--format", help="Form of HDF5: elmokit, bilm-tf or allennlp.")
    ] = "elmokit",
    state: Annotated[
        str,
        typer.Option(
            help="Before each sentence: reset (zeros), carry (the sentence before), warm (fixed)."
        ),
    ] = "reset",
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="i/N",
            help="Only every N-th line from line i on, i from 0: 0/4 to 3/4. Give each its OUT.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a killed job stopped, or begin.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUT and what is left of an earlier job.")
    ] = False,
    tokenizer: OtherTokenizerOption = None,
    batch_tokens: Annotated[
        int, typer.Option(help="Words computed together; no effect on the result.", min=1)
    ] = 4096,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Write the vectors of every line of TEXT under the number of the line, from 0.

    Lines are streamed, so memory does not depend on their number. Blank lines are kept as empty
    sentences. Finished sentences are kept in OUT.parts until the file is whole.
    """
    from elmokit.embed.embedder import Embedder
    from elmokit.embed.job import embed_files

    with as_input_error():  # precision and device are checked there
        embedder = Embedder.load(model, device=device, precision=precision, num_threads=threads)
    with progress_bar("embedding") as update:
        report = embed_files(
            embedder,
            texts,
            output,
            layers=layers_of(layers),
            state=state,
            dtype=dtype,
            file_format=format_,
            tokenizer=tokenizer,
            shard=_parse_shard(shard),
            batch_tokens=batch_tokens,
            resume=resume,
            overwrite=overwrite,
            on_progress=lambda done, total, status: update(done, total=total, status=status),
        )
    if json:
        emit_json(report)
    else:
        _print(report)


def _parse_shard(text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, 1
    index, separator, count = text.partition("/")
    if not (separator and index.isdecimal() and count.isdecimal()):
        raise InputError(f"--shard takes i/N with 0 <= i < N, such as 0/4, got {text!r}.")
    return int(index), int(count)


def _print(report: "EmbedReport") -> None:
    facts = report.facts
    resumed = f" ({report.resumed_sentences:,} done before)" if report.resumed_sentences else ""
    typer.echo(f"output      {report.output}")
    typer.echo(f"sentences   {report.sentences:,}{resumed}")
    typer.echo(f"words       {report.words:,}")
    typer.echo(f"time        {report.seconds:.1f} s, {report.words_per_second:,.0f} words/s")
    typer.echo(
        f"vectors     layers {facts['layers']}, {facts['dim']} dimensions, {facts['dtype']}, "
        f"state {facts['state']}, precision {facts['precision']}"
    )
    typer.echo(
        f"model       {facts['model_hash'][:16]}, tokenizer {facts['tokenizer']['name']}, "
        f"normalization {facts['normalization']}"
    )
