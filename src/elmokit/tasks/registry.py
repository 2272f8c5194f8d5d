"""The tasks that there are, by the names that users type."""

from typing import Any

from elmokit.errors import InputError
from elmokit.tasks.coref import CorefTask
from elmokit.tasks.nli import NliTask
from elmokit.tasks.qa import QaTask
from elmokit.tasks.sentiment import SentimentTask
from elmokit.tasks.srl import SrlTask
from elmokit.tasks.tagging import NerTask, PosTask
from elmokit.tasks.task import Task

TASKS: dict[str, Task[Any]] = {
    task.name: task
    for task in (
        PosTask(),
        NerTask(),
        SrlTask(),
        SentimentTask(),
        NliTask(),
        QaTask(),
        CorefTask(),
    )
}
"""By name."""


def find_task(name: str) -> Task[Any]:
    """Return the task of this name.

    Raises:
        ValueError: if there is none.
    """
    if name not in TASKS:
        raise InputError(f"There is no task {name!r}; choose one of {', '.join(TASKS)}.")
    return TASKS[name]
