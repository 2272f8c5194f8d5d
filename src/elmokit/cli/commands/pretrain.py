"""`elmokit pretrain` and `finetune`: models from text; `plot` and `track`: curves of training."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, duration, is_main_process, watch_training
from elmokit.errors import counted, refuse
from elmokit.tasks.registry import TASKS


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
    options.choose_threads(threads)
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


def finetune(
    model: options.ModelArgument,
    corpus: Annotated[list[Path], typer.Argument(metavar="CORPUS", help=f"{options.CORPUS_HELP}.")],
    *,
    output: options.RunDirOption,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="TASK",
            help="CORPUS and --valid are data of this task: files, or directories with its train… "
            f"and dev… file. One of {', '.join(TASKS)}.",
        ),
    ] = None,
    units: Literal["words", "morphemes", "characters"] = "words",
    recipe: Path | None = None,
    set_: options.SetOption = None,
    valid: list[Path] | None = None,
    general: list[Path] | None = None,
    vocab: Annotated[str | None, typer.Option(metavar="FILE")] = None,
    text_field: options.TextFieldOption = None,
    minutes: float | None = None,
    epochs: float | None = None,
    tokens: int | None = None,
    resume: bool = False,
    device: str = "auto",
    threads: options.ThreadsOption = None,
    workers: options.WorkersOption = 1,
) -> Result | None:
    """Continue training a model on in-domain text; print perplexity before and after.

    CORPUS is the in-domain text. With --task it is data of a task, as is --valid: their sentences
    are read as the task reads them. Without a limit, training makes one pass over CORPUS.

    Args:
        units: With --task: what a token of the data is.
        general: Out-of-domain text to score before and after.
        vocab: New vocabulary, or `corpus` to build one from CORPUS.
    """
    from elmokit.tasks.task import TaskText
    from elmokit.text.sentences import Workers
    from elmokit.text.word_vocab import WordVocab
    from elmokit.training.pretraining.finetune import finetune as run
    from elmokit.training.pretraining.presets import finetune_config
    from elmokit.training.pretraining.run import RunOptions
    from elmokit.training.schedules import Limits

    config = finetune_config(
        recipe=recipe, overrides=options.overrides({"text.field": text_field}, set_)
    )
    refuse({
        "--units is for the data of a task: add --task.": task is None and units != "words",
        "--workers and --column are for raw text, not for --task.": (
            task is not None and (workers > 1 or text_field is not None)
        ),
    })  # fmt: skip
    reader = None
    if task is not None:
        reader = TaskText.of_model(task, model, units=units)
        corpus, valid = reader.files(corpus, "train"), reader.files(valid or [], "dev")
    run_options = RunOptions(
        limits=Limits(minutes=minutes, epochs=epochs, tokens=tokens), valid=valid or [],
        vocab=None if vocab in (None, "corpus") else WordVocab.read(vocab),
        resume=resume, device=device, workers=Workers(workers),
        reader=reader,
    )  # fmt: skip
    options.choose_threads(threads)
    with watch_training("fine-tuning", run_options) as watched:
        result = run(
            config, model, corpus, output, watched,
            general=general or [], count_vocab=vocab == "corpus",
        )  # fmt: skip
    lines = [
        f"model  {result.training.model_dir}",
        f"{'perplexity':16s}{'before':>10s}{'after':>10s}   (full softmax, OOV rate, targets)",
    ]
    for name, after in result.after.items():
        before = f"{result.before[name].mean:10.1f}" if name in result.before else f"{'–':>10s}"
        lines.append(
            f"{name:16s}{before}{after.mean:10.1f}   {after.oov_rate:.1%}, {after.tokens:,}"
        )
    hint = "With --general FILE it also shows what the model forgets."
    note = hint if len(result.after) == 1 else ""
    return Result(result, lines, note=note) if is_main_process() else None


def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    overwrite: bool = False,
) -> Result:
    """Plot loss and held-out perplexity of a run by direction, even while it is training.

    The same plot as in the panel on training of `elmokit explore`, with a line for the base model
    of a fine-tuning run.

    Args:
        run: Directory of pretrain or finetune.
        output: Write .png, .pdf or .svg; default: plot.png in RUN.
    """
    from elmokit.files.atomic import check_target
    from elmokit.training.curves import plot_run

    target = output or run / "plot.png"
    check_target(target, overwrite=overwrite)
    drawn = plot_run(run, target)
    state = "running" if drawn.is_running else "ended"
    return Result(
        {"run": run, "output": target, "rows": len(drawn.rows)},
        [f"{target}: {counted(len(drawn.rows), 'row')} of {run} ({state})"],
    )


def track(run: Annotated[Path, typer.Argument(metavar="RUN")], *, follow: bool = False) -> Result:
    """Show the metrics and settings of a run in TensorBoard (RUN/tensorboard).

    The metrics are read from RUN/metrics.jsonl, so training never waits for a tracker.

    Args:
        run: Directory of pretrain, finetune or train.
        follow: Continue while the run trains, until Ctrl-C.
    """
    from elmokit.training.curves import track as write_events

    count = write_events(run, follow=follow)
    return Result({"run": run, "rows": count}, [f"{counted(count, 'row')} of {run} in TensorBoard"])
