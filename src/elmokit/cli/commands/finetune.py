"""`elmokit finetune`: a model trained further on text of a domain."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, is_main_process, watch_training
from elmokit.cli.threads import choose_threads
from elmokit.errors import refuse
from elmokit.tasks.registry import TASKS


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
    choose_threads(threads)
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
