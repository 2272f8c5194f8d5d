"""`elmokit finetune`: continue a model on text of a domain."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli.common import (
    JsonOption,
    ModelArgument,
    emit_json,
    is_main_process,
    progress_bar,
    say_on_interrupt,
)

if TYPE_CHECKING:
    from elmokit.training.finetune import FinetuneResult


def finetune(
    model: ModelArgument,
    corpus: Annotated[
        list[Path],
        typer.Argument(
            metavar="CORPUS", help="Domain text: .txt, .gz, .xz, .zst, .jsonl, .parquet, a folder."
        ),
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Run and model directory.")
    ],
    recipe: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Settings over the defaults.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="a.b=c", help="One setting over defaults and recipe."),
    ] = None,
    valid: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="In-domain text to score; without it a little is held out."
        ),
    ] = None,
    general: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Out-of-domain text to score before and after."),
    ] = None,
    vocab: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A changed vocabulary, or the word `corpus`: counted from CORPUS."
        ),
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after this time.")] = None,
    epochs: Annotated[
        float | None, typer.Option(help="Stop after so many passes; default: one.")
    ] = None,
    tokens: Annotated[int | None, typer.Option(help="Stop after so many predicted words.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint in DIR.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    json: JsonOption = False,
) -> None:
    """Continue MODEL on CORPUS and print its perplexity before and after, in and out of domain."""
    from elmokit.cli.pretrain import show_training
    from elmokit.text.word_vocab import WordVocab
    from elmokit.training.finetune import finetune as run
    from elmokit.training.presets import finetune_config
    from elmokit.training.schedules import Limits

    config = finetune_config(recipe=recipe, overrides=set_ or [])
    with (
        progress_bar("fine-tuning", total=1.0) as update,
        say_on_interrupt(
            lambda: f"Checkpoints in {output} are whole; go on with the same command and --resume."
        ),
    ):
        result = run(
            config,
            model,
            corpus,
            output,
            limits=Limits(minutes=minutes, epochs=epochs, tokens=tokens),
            valid=valid or [],
            general=general or [],
            vocab=None if vocab in (None, "corpus") else WordVocab.read(vocab),
            count_vocab=vocab == "corpus",
            resume=resume,
            device=device,
            on_event=show_training(update),
        )
    if is_main_process():
        _print(result, as_json=json)


def _print(result: "FinetuneResult", *, as_json: bool) -> None:
    if as_json:
        emit_json(result)
        return
    typer.echo(f"model  {result.training.model_dir}")
    typer.echo(
        f"{'perplexity':16s}{'before':>10s}{'after':>10s}   (full softmax, OOV rate, targets)"
    )
    for name, after in result.after.items():
        before = f"{result.before[name].mean:10.1f}" if name in result.before else f"{'–':>10s}"
        typer.echo(f"{name:16s}{before}{after.mean:10.1f}   {after.oov_rate:.1%}, {after.tokens:,}")
