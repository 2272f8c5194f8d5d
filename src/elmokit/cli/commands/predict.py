"""`elmokit predict`: predict with a trained task model on raw text."""

from itertools import chain, tee
from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.cli.threads import choose_threads
from elmokit.errors import InputError


def predict(
    run: options.TaskRunArgument,
    text: Annotated[list[Path], typer.Argument(metavar="TEXT")],
    *,
    tokenizer: str | None = None,
    model: options.RunModelOption = None,
    device: str = "auto",
    threads: options.ThreadsOption = None,
    json: bool = False,
) -> None:
    """Predict with a trained task model on raw text.

    Prints one answer per line of TEXT: tagged words, brackets or labels. With --json, an answer
    has the text as written, tokens with character offsets, and probabilities: softmax of labels
    and tags; for spans, the share of the legal tag sequences with the span (ner: by its CRF).

    Args:
        text: Files with one text per line; - is standard input.
        json: Print one JSON object per line, with probabilities.
    """
    from elmokit.embed.numbered_lines import NumberedLines
    from elmokit.tasks.runs.task_run import TaskRun

    choose_threads(threads)
    trained = TaskRun.load(run, model=model, device=device)
    located = NumberedLines([str(path) for path in text]).located()
    first = next(located, None)
    if first is None:
        raise InputError(f"Nothing to predict: no line in {', '.join(map(str, text))}.")
    places, texts = tee(chain([first], located))
    names, lines = (str(place) for place, _ in places), (line for _, line in texts)
    if json:
        for answer in trained.predict_json(lines, tokenizer=tokenizer, names=names):
            emit_json(answer)
        return
    for answer in trained.predict(lines, tokenizer=tokenizer, names=names):
        typer.echo(trained.task.show(*answer))
