"""`elmokit finetune`: continue training a model on text of a domain."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json, is_main_process
from elmokit.cli.training_progress import watch_training

if TYPE_CHECKING:
    from elmokit.training.pretraining.finetune import FinetuneResult


def finetune(
    model: options.ModelArgument,
    corpus: options.CorpusArgument,
    *,
    output: options.RunDirOption,
    recipe: options.RecipeOption = None,
    set_: options.SetOption = None,
    valid: options.ValidOption = None,
    general: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Out-of-domain text, also scored before and after."),
    ] = None,
    vocab: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="New vocabulary; the word `corpus`: count one from CORPUS."
        ),
    ] = None,
    minutes: options.MinutesOption = None,
    epochs: options.EpochsOption = None,
    tokens: options.TokensOption = None,
    resume: options.ResumeRunOption = False,
    device: options.DeviceOption = "auto",
    threads: options.ThreadsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Continue training a model on text of a domain; print perplexity before and after.

    The domain is CORPUS, out of domain is --general. Default length: one pass over CORPUS.
    """
    from elmokit.text.word_vocab import WordVocab
    from elmokit.training.pretraining.finetune import finetune as run
    from elmokit.training.pretraining.presets import finetune_config
    from elmokit.training.schedules import Limits

    config = finetune_config(recipe=recipe, overrides=set_ or [])
    fixed_vocab = None if vocab in (None, "corpus") else WordVocab.read(vocab)
    limits = Limits(minutes=minutes, epochs=epochs, tokens=tokens)
    options.use_threads(threads)
    with watch_training(
        "fine-tuning", output, limits, valid=valid, vocab=fixed_vocab, resume=resume, device=device
    ) as run_options:
        count_vocab, general = vocab == "corpus", general or []
        result = run(
            config, model, corpus, output, run_options, general=general, count_vocab=count_vocab
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
