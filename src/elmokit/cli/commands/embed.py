"""`elmokit embed`, `merge` and `bench`: contextual vectors in files, shards of them, speed."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, progress_bar
from elmokit.embed.formats.registry import describe_formats, suffixes
from elmokit.errors import InputError, counted
from elmokit.files.atomic import check_target

OutputOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="OUT", help=f"Output file: {', '.join(suffixes())}."),
]


def embed(
    texts: Annotated[list[str], typer.Argument(metavar="TEXT", help=options.TEXT_HELP)],
    *,
    output: OutputOption,
    model: options.ModelOption = None,
    layers: str | None = None,
    pooling: Annotated[str | None, typer.Option("--pooling", "--pool")] = None,
    precision: str = "fp32",
    dtype: str = "float32",
    format_: Annotated[
        str,
        typer.Option("--format", help=f"Layout of OUT, by name and suffix. {describe_formats()}."),
    ] = "elmokit",
    state: str = "reset",
    shard: Annotated[str | None, typer.Option(metavar="i/N")] = None,
    text_field: options.TextFieldOption = None,
    resume: bool = False,
    overwrite: bool = False,
    tokenizer: str | None = None,
    batch_tokens: Annotated[int, typer.Option(min=1)] = 4096,
    device: str = "auto",
    threads: options.ThreadsOption = None,
    engine: Literal["local", "ray"] = "local",
    address: Annotated[str | None, typer.Option(metavar="ADDRESS")] = None,
    workers: Annotated[int | None, typer.Option(min=1)] = None,
    gpus: Annotated[float, typer.Option(min=0.0)] = 0.0,
) -> Result:
    """Write contextual vectors of a text to a file, for each word, or sentence (--pooling).

    Each line or record of TEXT is read as one sentence, even if it is a paragraph; its key is its
    number, counted from 0. A blank line is an empty sentence. Lines are streamed, so memory use
    does not depend on their number. Finished sentences are kept in OUT.parts until OUT is complete.

    Args:
        engine: Where workers run: local (this machine) or ray (a Ray cluster).
        address: With --engine ray: the cluster, such as auto or ray://HOST:10001; default: start
            one on this machine.
        layers: all, top, average, or a layer number (0 is the token layer); default: all, with
            --pooling sif 0, with mean or max average.
        pooling: One vector per sentence: sif (rare words count more; best for similarity), or mean
            or max over its words; default: one per word.
        dtype: Data type in OUT: float32 or float16.
        state: LSTM state before each sentence: reset (zeros), carry (end of the previous sentence)
            or warm (one fixed state).
        shard: Embed every N-th line, from line i on (such as 0/4); use one OUT per shard.
        resume: Continue an interrupted job, or start one.
        overwrite: Replace OUT and discard an unfinished job.
        workers: With --engine ray: number of workers; default: 2.
        gpus: GPUs per Ray worker; with 0.25, four share one.
    """
    from elmokit.embed.job import embed_lines, output_paths
    from elmokit.embed.options import EmbedOptions
    from elmokit.files.sources import find_files

    chosen = EmbedOptions(
        layers=None if layers is None else options.layers_of(layers), pooling=pooling, state=state,
        dtype=dtype, file_format=format_,
        tokenizer=tokenizer, shard=_parse_shard(shard), batch_tokens=batch_tokens,
        text_field=text_field, resume=resume, overwrite=overwrite,
    )  # fmt: skip
    files, on_ray = find_files(texts, exclude=output_paths(output)), engine == "ray"
    if not on_ray and (workers is not None or gpus or address is not None):
        raise InputError("--address, --workers and --gpus are for Ray: add --engine ray.")
    if on_ray and device != "auto":
        raise InputError("--device applies to this machine; give Ray workers GPUs with --gpus.")
    with ExitStack() as stack:
        check_target(output, inputs=files, overwrite=overwrite or resume)
        if on_ray:
            from elmokit.integrations.ray_data import RayLineEmbedder

            lines = stack.enter_context(
                RayLineEmbedder(
                    model, chosen, precision=precision, num_actors=workers or 2, address=address,
                    num_cpus=threads or 1, num_gpus=gpus,
                )
            )  # fmt: skip
        else:
            from elmokit.embed.embedder import Embedder
            from elmokit.embed.numbered_lines import LocalLineEmbedder

            embedder = Embedder.load(model, device=device, precision=precision)
            lines = LocalLineEmbedder(embedder, chosen)
        update = stack.enter_context(progress_bar("embedding"))
        report = embed_lines(
            lines, files, output, chosen,
            on_progress=lambda done, total, status: update(done, total=total, status=status),
        )  # fmt: skip
    metadata = report.metadata
    resumed = f" ({report.resumed_sentences:,} finished before)" if report.resumed_sentences else ""
    pooled = f"{metadata['pool']} over the words, " if "pool" in metadata else ""
    return Result(report, [
        f"output      {report.output}",
        f"sentences   {report.sentences:,}{resumed}",
        f"words       {report.words:,}",
        f"time        {report.seconds:.1f} s, {report.words_per_second:,.0f} words/s",
        f"vectors     {pooled}{options.name_layers(metadata['layers'])}, {metadata['dim']} "
        f"dimensions, {metadata['dtype']}, state {metadata['state']}, "
        f"precision {metadata['precision']}",
        f"model       {metadata['model_hash'][:16]}, tokenizer {metadata['tokenizer']['name']}, "
        f"normalization {metadata['normalization']}",
    ])  # fmt: skip


def _parse_shard(text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, 1
    index, separator, count = text.partition("/")
    if not (separator and index.isdecimal() and count.isdecimal()):
        raise InputError(f"--shard takes i/N with 0 <= i < N, such as 0/4, got {text!r}.")
    return int(index), int(count)


def merge(
    shards: Annotated[list[Path], typer.Argument(metavar="SHARD")],
    *,
    output: OutputOption,
    overwrite: bool = False,
) -> Result:
    """Merge the files of `embed --shard i/N` into one file.

    Checks that the files were made by the same command, and that none is missing.

    Args:
        shards: All files of `embed --shard i/N`, in any order.
        overwrite: Replace OUT.
    """
    from elmokit.embed.merge import merge_shards

    report = merge_shards(shards, output, overwrite=overwrite)
    return Result(report, [
        f"output      {report.output}, from {counted(report.shards, 'shard')}",
        f"sentences   {report.sentences:,}",
        f"words       {report.words:,}",
    ])  # fmt: skip


def bench(
    model: options.ModelArgument,
    text: options.TextArgument,
    *,
    precision: str = "fp32,bf16,int8",
    seconds: Annotated[float, typer.Option(min=0.1)] = 5.0,
    threads: options.ThreadsOption = None,
) -> Result:
    """Measure how many words per second are embedded on this CPU.

    Args:
        precision: One or several of fp32, bf16 and int8, with commas.
        seconds: Duration of each measurement.
    """
    from elmokit.embed.bench import bench as measure

    speeds = measure(model, text, precision.split(","), seconds=seconds)
    lines = [f"{name:<6}{speed:10,.0f} words/s" for name, speed in speeds.items()]
    return Result({"model": model, "speeds": speeds}, lines)
