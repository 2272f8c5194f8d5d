"""`elmokit finetune`: continue a model on text of a domain."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli.options import (
    DeviceOption,
    EpochsOption,
    JsonOption,
    MinutesOption,
    ModelArgument,
    RecipeOption,
    ResumeRunOption,
    RunDirOption,
    SetOption,
    ThreadsOption,
    TokensOption,
    ValidOption,
)
from elmokit.cli.output import emit_json, is_main_process, use_threads
from elmokit.cli.progress import watch_training

if TYPE_CHECKING:
    from elmokit.training.pretraining.finetune import FinetuneResult


def finetune(
    model: ModelArgument,
    corpus: Annotated[
        list[Path],
        typer.Argument(
            metavar="CORPUS", help="Domain text: .txt, .gz, .xz, .zst, .jsonl, .parquet, a folder."
        ),
    ],
    *,
    output: RunDirOption,
    recipe: RecipeOption = None,
    set_: SetOption = None,
    valid: ValidOption = None,
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
    minutes: MinutesOption = None,
    epochs: EpochsOption = None,
    tokens: TokensOption = None,
    resume: ResumeRunOption = False,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Continue MODEL on CORPUS and print its perplexity before and after, in and out of domain.

    Without a limit it is one pass over CORPUS.
    """
    from elmokit.text.word_vocab import WordVocab
    from elmokit.training.pretraining.finetune import finetune as run
    from elmokit.training.pretraining.presets import finetune_config
    from elmokit.training.pretraining.start import RunOptions
    from elmokit.training.schedules import Limits

    config = finetune_config(recipe=recipe, overrides=set_ or [])
    use_threads(threads)
    with watch_training("fine-tuning", output) as listeners:
        options = RunOptions(
            limits=Limits(minutes=minutes, epochs=epochs, tokens=tokens),
            valid=valid or [],
            vocab=None if vocab in (None, "corpus") else WordVocab.read(vocab),
            resume=resume,
            device=device,
            save_on_signals=True,
            on_preparation=listeners.on_preparation,
            on_event=listeners.on_event,
        )
        result = run(
            config,
            model,
            corpus,
            output,
            options,
            general=general or [],
            count_vocab=vocab == "corpus",
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
