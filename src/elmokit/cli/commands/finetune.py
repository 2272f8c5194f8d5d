"""`elmokit finetune`: continue training a model on in-domain text."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from elmokit.cli import options
from elmokit.cli.options import choose_threads
from elmokit.cli.output import emit_json, is_main_process, watch_training
from elmokit.tasks.registry import TASKS

if TYPE_CHECKING:
    from elmokit.tasks.task import TaskText, Units
    from elmokit.training.pretraining.finetune import FinetuneResult


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
    columns: options.ColumnsOption = None,
    precision: options.TrainingPrecisionOption = None,
    recipe: options.RecipeOption = None,
    set_: options.SetOption = None,
    valid: list[Path] | None = None,
    general: list[Path] | None = None,
    replay: Annotated[str | None, typer.Option(metavar="TEXT:SHARE")] = None,
    vocab: Annotated[str | None, typer.Option(metavar="FILE")] = None,
    text_field: options.TextFieldOption = None,
    minutes: float | None = None,
    epochs: float | None = None,
    tokens: int | None = None,
    resume: bool = False,
    device: str = "auto",
    threads: options.ThreadsOption = None,
    workers: options.WorkersOption = 1,
    json: bool = False,
) -> None:
    """Continue training a model on in-domain text; print perplexity before and after.

    CORPUS is the in-domain text. With --task it is data of a task, as is --valid: their sentences
    are read as the task reads them. Without a limit, training makes one pass over CORPUS.

    Args:
        units: With --task: what a token of the data is.
        general: Out-of-domain text to score before and after.
        replay: General text to mix in, so that the model forgets less, and its share of the words,
            such as wiki.txt:0.2. Sets text.replay and text.replay_share.
        vocab: New vocabulary, or `corpus` to build one from CORPUS.
    """
    from elmokit.text.sentences import Workers
    from elmokit.text.word_vocab import WordVocab
    from elmokit.training.pretraining.finetune import finetune as run
    from elmokit.training.pretraining.presets import finetune_config
    from elmokit.training.pretraining.run import RunOptions
    from elmokit.training.schedules import Limits

    own = {"text.field": text_field, "train.precision": precision, **_replayed(replay)}
    overrides = [*options.as_settings(own), *(set_ or [])]
    config = finetune_config(recipe=recipe, overrides=overrides)
    options.check_agreement(config, {
        "--column": ("text.field", text_field), "--precision": ("train.precision", precision),
    })  # fmt: skip
    is_raw = workers > 1 or text_field is not None
    reader = _task_text(task, units, columns, model, is_raw=is_raw)
    if reader is not None:
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
    if is_main_process():
        _print(result, as_json=json)


def _replayed(text: str | None) -> dict[str, str | float]:
    """Return ``--replay TEXT:SHARE`` as settings."""
    from elmokit.errors import InputError
    from elmokit.files.remote import as_address
    from elmokit.files.sources import STANDARD_INPUT, find_files

    if text is None:
        return {}
    path, _, share = text.rpartition(":")
    if not path or re.fullmatch(r"0?\.[0-9]+", share) is None or not float(share):
        raise InputError(f"--replay takes TEXT:SHARE, such as wiki.txt:0.2, got {text!r}.")
    if STANDARD_INPUT in find_files(path):
        raise InputError("--replay may read its text several times: give a file, not -.")
    return {
        "text.replay": as_address(path) or str(Path(path).absolute()),
        "text.replay_share": float(share),
    }


def _task_text(
    task: str | None, units: "Units", columns: str | None, model: str, *, is_raw: bool
) -> "TaskText | None":
    """Return what reads the data of a task; none for raw text, which ``is_raw`` demands."""
    from elmokit.errors import InputError
    from elmokit.tasks.task import TaskText

    if task is None and (units != "words" or columns is not None):
        raise InputError("--units and --columns are for the data of a task: add --task.")
    if task is not None and is_raw:
        raise InputError("--workers and --column are for raw text, not for --task.")
    if task is None:
        return None
    return TaskText.of_model(task, model, units=units, columns=options.columns_of(columns))


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
    if len(result.after) == 1:
        typer.echo("With --general FILE it also shows what the model forgets.", err=True)
