"""`elmokit pretrain`: raw text to model in one command."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli.common import (
    JsonOption,
    Progress,
    emit_json,
    is_main_process,
    progress_bar,
    say_on_interrupt,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from elmokit.training.run import TrainingEvent, TrainingResult


def pretrain(
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS",
            help="Raw text: .txt, .gz, .xz, .zst, .jsonl, .parquet, a folder, or shards.",
        ),
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Run and model directory.")
    ],
    preset: Annotated[
        str | None,
        typer.Option(
            help="toy, tiny, small, medium or original; default: the recipe's, or else tiny."
        ),
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Settings over the preset's.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="a.b=c", help="One setting over preset and recipe."),
    ] = None,
    valid: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Validation text; without it a little is held out."),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="simple, whitespace, english or korean; short for --set text.tokenizer.name=…"
        ),
    ] = None,
    vocab: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Use this vocabulary instead of counting one."),
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after this time.")] = None,
    epochs: Annotated[
        float | None, typer.Option(help="Stop after so many passes over the corpus.")
    ] = None,
    tokens: Annotated[int | None, typer.Option(help="Stop after so many predicted words.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint in DIR.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    threads: Annotated[
        int | None, typer.Option(help="CPU threads; default: PyTorch's choice.", min=1)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Train a biLM on CORPUS: tokenizer, vocabulary, shards, training, validation, model directory.

    Under torchrun the same command is data-parallel: torchrun --nproc-per-node 2 -m elmokit
    pretrain …
    """
    from elmokit.text.word_vocab import WordVocab
    from elmokit.training.presets import pretrain_config
    from elmokit.training.pretrain import pretrain as run
    from elmokit.training.schedules import Limits

    overrides = [*([f'text.tokenizer.name="{tokenizer}"'] if tokenizer else []), *(set_ or [])]
    config = pretrain_config(preset, recipe=recipe, overrides=overrides)
    fixed_vocab = None if vocab is None else WordVocab.read(vocab)
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    with (
        progress_bar("training", total=1.0) as update,
        say_on_interrupt(
            lambda: f"Checkpoints in {output} are whole; go on with the same command and --resume."
        ),
    ):
        result = run(
            config,
            [Path(path) for path in corpus],
            output,
            limits=Limits(minutes=minutes, epochs=epochs, tokens=tokens),
            valid=[Path(path) for path in valid or []],
            vocab=fixed_vocab,
            resume=resume,
            device=device,
            on_event=show_training(update),
        )
    if is_main_process():
        _print(result, as_json=json)


def show_training(update: Progress) -> "Callable[[TrainingEvent], None]":
    """Return a listener that shows tokens/s, loss and validation beside the bar."""
    validation = ""

    def show(event: "TrainingEvent") -> None:
        nonlocal validation
        if event.validation is not None:
            validation = f" · held-out perplexity {event.validation.mean:.1f}"
        report = event.report
        update(
            report.share,
            status=f"step {report.progress.step} · {event.tokens_per_second:,.0f} tokens/s · "
            f"loss {report.loss:.3f}{validation}",
        )

    return show


def _print(result: "TrainingResult", *, as_json: bool) -> None:
    if as_json:
        emit_json(dataclasses.asdict(result))
        return
    typer.echo(f"model          {result.model_dir}")
    typer.echo(f"steps          {result.progress.step}")
    typer.echo(f"words read     {result.progress.tokens:,} ({result.num_epochs:.2f} epochs)")
    typer.echo(f"time           {result.progress.seconds / 60:.1f} minutes")
    if result.stopped_early:
        typer.echo("stopped early: the held-out perplexity no longer fell")
    if result.perplexity is not None:
        report = result.perplexity
        typer.echo(
            f"held out       perplexity {report.mean:.1f} (forward {report.forward:.1f}, backward "
            f"{report.backward:.1f}) over {report.tokens:,} targets, OOV {report.oov_rate:.1%}"
        )
