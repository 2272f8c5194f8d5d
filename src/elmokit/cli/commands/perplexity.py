"""`elmokit perplexity`: how well a model predicts a text."""

import dataclasses

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json


def perplexity(
    model: options.ModelArgument,
    text: options.TextArgument,
    *,
    batch_size: options.ScoringBatchOption = 1024,
    tokenizer: str | None = None,
    state: str = "warm",
    unknown: str = "auto",
    precision: str = "auto",
    text_field: options.TextFieldOption = None,
    device: str = "auto",
    threads: options.ThreadsOption = None,
    json: bool = False,
) -> None:
    """Print the forward, backward and mean perplexity of a model on a text.

    Each word and sentence end of TEXT is scored once per direction, with the full softmax. A word
    outside the vocabulary counts as <UNK>; bits per byte have its spelling, too, if the model knows
    it, and can then be compared between vocabularies.

    Args:
        precision: fp32, bf16, or auto: bf16 where the processor is faster in it, which changes the
            figures by less than 0.1 %.
    """
    from elmokit.corpus.readers import ReadReport
    from elmokit.evaluation.perplexity import perplexity_of_files
    from elmokit.evaluation.text_scorer import open_scorer

    read = ReadReport()
    scorer, splitter = open_scorer(
        model, tokenizer=tokenizer, device=device, batch_size=batch_size, state=state,
        precision=precision, unknown=unknown,
    )  # fmt: skip
    report = perplexity_of_files(scorer, splitter, text, read=read, text_field=text_field)
    if json:
        emit_json({
            **dataclasses.asdict(report), "skipped": read.skipped,
            "metadata": scorer.metadata(tokenizer=splitter),
        })  # fmt: skip
        return
    typer.echo(f"forward        {report.forward:10.2f}")
    typer.echo(f"backward       {report.backward:10.2f}")
    typer.echo(f"mean           {report.mean:10.2f}   (computed in {report.precision})")
    if report.oov_rate:
        typer.echo(f"known words    {report.mean_known:10.2f}   (mean, without unknown words)")
    typer.echo(f"tokens         {report.tokens:10d}   (words and sentence ends, each scored once)")
    typer.echo(f"sentences      {report.sentences:10d}")
    if read.num_bad:
        typer.echo(f"skipped lines  {read.num_bad:10d}   (of {read.lines:,}; they are not scored)")
    typer.echo(
        f"OOV rate       {report.oov_rate:10.2%}   (scored as <UNK>; vocabulary of "
        f"{report.vocabulary:,} words)"
    )
    reading = "unknown words spelled by the model" if report.is_spelled else (
        f"to {report.bits_per_byte_spelled:.3f}: unknown words scored as <UNK>, or spelled at 8 "
        "bits a byte"
    )  # fmt: skip
    typer.echo(f"bits per byte  {report.bits_per_byte:10.3f}   ({reading})")
