"""`elmokit predict`: predict with a trained task model on raw text."""

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.cli.threads import choose_threads
from elmokit.errors import InputError


def predict(
    run: options.TaskRunArgument,
    text: Annotated[
        list[Path],
        typer.Argument(metavar="TEXT", help="Files with one text per line; - is standard input."),
    ],
    *,
    tokenizer: options.OtherTokenizerOption = None,
    model: options.ModelOption = None,
    device: options.DeviceOption = "auto",
    threads: options.ThreadsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Predict with a trained task model on raw text.

    Prints one answer per line of TEXT: tagged words, brackets or labels.
    """
    from elmokit.embed.numbered_lines import NumberedLines
    from elmokit.tasks.runs.task_run import TaskRun

    choose_threads(threads)
    trained = TaskRun.load(run, model=model, device=device)
    numbered = iter(NumberedLines([str(path) for path in text]).share(0, 1))
    first = next(numbered, None)
    if first is None:
        raise InputError(f"Nothing to predict: no line in {', '.join(map(str, text))}.")
    answers = trained.predict((line for _, line in chain([first], numbered)), tokenizer=tokenizer)
    if json:
        emit_json({"predictions": [trained.task.as_json(*answer) for answer in answers]})
        return
    for answer in answers:
        typer.echo(trained.task.show(*answer))
