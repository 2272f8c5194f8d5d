"""`elmokit pretrain`: raw text to model in one command; `plot` and `track`: its curves."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from elmokit.cli import options
from elmokit.cli.options import choose_threads
from elmokit.cli.output import duration, emit_json, is_main_process, watch_training
from elmokit.errors import counted

if TYPE_CHECKING:
    from elmokit.training.pretraining.run import TrainingResult


def pretrain(
    corpus: Annotated[
        list[Path],
        typer.Argument(metavar="CORPUS", help=f"{options.CORPUS_HELP}, or a folder of shards."),
    ],
    *,
    output: options.RunDirOption,
    preset: Annotated[
        str | None, typer.Option(help=f"One of {options.PRESETS}; default: the recipe's, or tiny.")
    ] = None,
    minutes: float | None = None,
    epochs: float | None = None,
    tokens: int | None = None,
    keep: Annotated[str | None, typer.Option(metavar="1M,2M,…")] = None,
    precision: options.TrainingPrecisionOption = None,
    recipe: options.RecipeOption = None,
    set_: options.SetOption = None,
    input_: Annotated[Literal["chars", "words"] | None, typer.Option("--input")] = None,
    valid: list[Path] | None = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help=f"One of {options.TOKENIZERS}; sets text.tokenizer.name; default: that of "
            "finished shards, or simple."
        ),
    ] = None,
    language: options.LanguageOption = None,
    vocab: Path | None = None,
    text_field: options.TextFieldOption = None,
    resume: bool = False,
    device: str = "auto",
    threads: options.ThreadsOption = None,
    workers: options.WorkersOption = 1,
    json: bool = False,
) -> None:
    """Train a biLM on raw text: tokenize, build the vocabulary, write shards, train, validate.

    For data-parallel training, use torchrun --nproc-per-node 2 -m elmokit pretrain …

    Args:
        input_: Input: chars (a character CNN, so no word is unknown) or words (an embedding table);
            default: the recipe's, or chars.
        keep: Also keep the models after so many predicted words, in DIR/kept; sets
            train.keep_tokens.
        vocab: Vocabulary; default: counted from CORPUS.
    """
    from elmokit.text.sentences import Workers
    from elmokit.text.tokenizers.registry import TokenizerConfig
    from elmokit.text.word_vocab import WordVocab
    from elmokit.training.pretraining.presets import pretrain_config
    from elmokit.training.pretraining.run import RunOptions
    from elmokit.training.pretraining.run import pretrain as run
    from elmokit.training.schedules import Limits

    kept, tokenizer = options.counts_of(keep), options.tokenizer_of(tokenizer, language)
    own = {
        "text.tokenizer.name": tokenizer,
        "text.field": text_field,
        "train.keep_tokens": kept,
        "train.precision": precision,
    }
    overrides = [*options.as_settings(own), *(set_ or [])]
    config = pretrain_config(preset, recipe=recipe, input_kind=input_, overrides=overrides)
    options.check_agreement(config, {
        "--tokenizer": ("text.tokenizer.name", tokenizer and TokenizerConfig(name=tokenizer).name),
        "--column": ("text.field", text_field),
        "--precision": ("train.precision", precision),
        "--keep": ("train.keep_tokens", kept),
    })  # fmt: skip
    run_options = RunOptions(
        limits=Limits(minutes=minutes, epochs=epochs, tokens=tokens), valid=valid or [],
        vocab=None if vocab is None else WordVocab.read(vocab), resume=resume, device=device,
        workers=Workers(workers),
    )  # fmt: skip
    choose_threads(threads)
    with watch_training("training", run_options) as watched:
        result = run(config, corpus, output, watched)
    if is_main_process():
        _print(result, as_json=json)


def _print(result: "TrainingResult", *, as_json: bool) -> None:
    if as_json:
        emit_json(dataclasses.asdict(result))
        return
    typer.echo(f"model          {result.model_dir}")
    typer.echo(f"steps          {result.progress.step}")
    typer.echo(
        f"read           {result.progress.tokens:,} words and sentence ends "
        f"({result.num_epochs:.2f} epochs)"
    )
    typer.echo(f"time           {duration(result.progress.seconds)}")
    if result.stopped_early:
        typer.echo("stopped early: held-out perplexity stopped improving")
    if result.perplexity is not None:
        report = result.perplexity
        typer.echo(
            f"held out       perplexity {report.mean:.1f} (forward {report.forward:.1f}, backward "
            f"{report.backward:.1f}) over {counted(report.tokens, 'target')}, OOV "
            f"{report.oov_rate:.1%}"
        )


def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Plot loss and held-out perplexity of a run by direction, even while it is training.

    The same plot as in the panel on training of `elmokit explore`. It has a line for an n-gram
    model if RUN holds ngram.json (from benchmarks/bench_ngram.py), and one for the base model of a
    fine-tuning run.

    Args:
        run: Directory of pretrain or finetune.
        output: Write .png, .pdf or .svg; default: plot.png in RUN.
    """
    from elmokit.files.atomic import check_target
    from elmokit.training.curves import plot_run

    target = output or run / "plot.png"
    check_target(target, overwrite=overwrite)
    drawn = plot_run(run, target)
    if json:
        emit_json({"run": run, "output": target, "rows": len(drawn.rows)})
    else:
        state = "running" if drawn.is_running else "ended"
        typer.echo(f"{target}: {counted(len(drawn.rows), 'row')} of {run} ({state})")


def track(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    tracker: Annotated[Literal["tensorboard"], typer.Argument()] = "tensorboard",
    *,
    follow: bool = False,
    json: bool = False,
) -> None:
    """Show the metrics and settings of a run in TensorBoard (RUN/tensorboard).

    The metrics are read from RUN/metrics.jsonl, so training never waits for a tracker.

    Args:
        run: Directory of pretrain, finetune or train.
        tracker: Others read the rows in Python: see the guide to pre-training.
        follow: Continue while the run trains, until Ctrl-C.
    """
    from elmokit.training.curves import track as write_events

    count = write_events(run, follow=follow)
    if json:
        emit_json({"run": run, "tracker": tracker, "rows": count})
    else:
        typer.echo(f"{counted(count, 'row')} of {run} sent to {tracker}")
