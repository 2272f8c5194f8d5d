"""`elmokit pretrain`: a model from raw text."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, duration, is_main_process, watch_training
from elmokit.cli.threads import choose_threads
from elmokit.errors import counted


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
    recipe: Path | None = None,
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
    language: str | None = None,
    vocab: Path | None = None,
    text_field: options.TextFieldOption = None,
    resume: bool = False,
    device: str = "auto",
    threads: options.ThreadsOption = None,
    workers: options.WorkersOption = 1,
) -> Result | None:
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
    from elmokit.text.word_vocab import WordVocab
    from elmokit.training.pretraining.presets import pretrain_config
    from elmokit.training.pretraining.run import RunOptions
    from elmokit.training.pretraining.run import pretrain as run
    from elmokit.training.schedules import Limits

    named = {
        "text.tokenizer.name": options.tokenizer_of(tokenizer, language),
        "text.field": text_field, "train.keep_tokens": options.counts_of(keep),
    }  # fmt: skip
    config = pretrain_config(
        preset, recipe=recipe, input_kind=input_, overrides=options.overrides(named, set_)
    )
    run_options = RunOptions(
        limits=Limits(minutes=minutes, epochs=epochs, tokens=tokens), valid=valid or [],
        vocab=None if vocab is None else WordVocab.read(vocab), resume=resume, device=device,
        workers=Workers(workers),
    )  # fmt: skip
    choose_threads(threads)
    with watch_training("training", run_options) as watched:
        result = run(config, corpus, output, watched)
    lines = [
        f"model          {result.model_dir}",
        f"steps          {result.progress.step}",
        f"read           {result.progress.tokens:,} words and sentence ends "
        f"({result.num_epochs:.2f} epochs)",
        f"time           {duration(result.progress.seconds)}",
    ]
    if result.stopped_early:
        lines.append("stopped early: held-out perplexity stopped improving")
    if (held_out := result.perplexity) is not None:
        lines.append(
            f"held out       perplexity {held_out.mean:.1f} (forward {held_out.forward:.1f}, "
            f"backward {held_out.backward:.1f}) over {counted(held_out.tokens, 'target')}, OOV "
            f"{held_out.oov_rate:.1%}"
        )
    return Result(result, lines) if is_main_process() else None
