"""`elmokit pretrain`: raw text to model in one command."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from elmokit.cli.options import (
    DeviceOption,
    EpochsOption,
    JsonOption,
    MinutesOption,
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
from elmokit.text.tokenizers.registry import describe_tokenizers

if TYPE_CHECKING:
    from elmokit.training.pretraining.run import TrainingResult


def pretrain(
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS",
            help="Raw text: .txt, .gz, .xz, .zst, .jsonl, .parquet, a folder, or shards.",
        ),
    ],
    *,
    output: RunDirOption,
    preset: Annotated[
        str | None,
        typer.Option(
            help="toy, tiny, small, medium or original; default: the recipe's, or else tiny."
        ),
    ] = None,
    recipe: RecipeOption = None,
    set_: SetOption = None,
    input_: Annotated[
        Literal["chars", "words"] | None,
        typer.Option(
            "--input",
            help="What the model reads: chars (words are spelled, none is unknown) or words (a "
            "table of the vocabulary, as before ELMo); default: the recipe's, or else chars.",
        ),
    ] = None,
    valid: ValidOption = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help=f"Short for --set text.tokenizer.name=…; one of {describe_tokenizers()}."
        ),
    ] = None,
    vocab: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Use this vocabulary instead of counting one."),
    ] = None,
    minutes: MinutesOption = None,
    epochs: EpochsOption = None,
    tokens: TokensOption = None,
    resume: ResumeRunOption = False,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Train a biLM on CORPUS: tokenizer, vocabulary, shards, training, validation, model directory.

    Under torchrun the same command is data-parallel: torchrun --nproc-per-node 2 -m elmokit
    pretrain …
    """
    from elmokit.text.word_vocab import WordVocab
    from elmokit.training.pretraining.presets import pretrain_config
    from elmokit.training.pretraining.pretrain import pretrain as run
    from elmokit.training.pretraining.start import RunOptions
    from elmokit.training.schedules import Limits

    overrides = [*([f'text.tokenizer.name="{tokenizer}"'] if tokenizer else []), *(set_ or [])]
    config = pretrain_config(preset, recipe=recipe, input_kind=input_, overrides=overrides)
    fixed_vocab = None if vocab is None else WordVocab.read(vocab)
    use_threads(threads)
    with watch_training("training", output) as listeners:
        options = RunOptions(
            limits=Limits(minutes=minutes, epochs=epochs, tokens=tokens),
            valid=valid or [],
            vocab=fixed_vocab,
            resume=resume,
            device=device,
            save_on_signals=True,
            on_preparation=listeners.on_preparation,
            on_event=listeners.on_event,
        )
        result = run(config, [Path(path) for path in corpus], output, options)
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
    typer.echo(f"time           {result.progress.seconds / 60:.1f} minutes")
    if result.stopped_early:
        typer.echo("stopped early: the held-out perplexity no longer fell")
    if result.perplexity is not None:
        report = result.perplexity
        typer.echo(
            f"held out       perplexity {report.mean:.1f} (forward {report.forward:.1f}, backward "
            f"{report.backward:.1f}) over {report.tokens:,} targets, OOV {report.oov_rate:.1%}"
        )
