"""The tasks, by the names that users type; their modules are imported when they are used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.tasks.task import Task


class TaskEntry(NamedTuple):
    """Where a task is, and what it finds, for help texts."""

    module: str
    class_name: str
    summary: str


TASKS = {
    "pos": TaskEntry("elmokit.tasks.tagging", "PosTask", "parts of speech"),
    "ner": TaskEntry("elmokit.tasks.tagging", "NerTask", "named entities"),
    "srl": TaskEntry("elmokit.tasks.srl", "SrlTask", "semantic roles of one predicate"),
    "sentiment": TaskEntry("elmokit.tasks.classification", "SentimentTask", "one label for a text"),
    "nli": TaskEntry("elmokit.tasks.classification", "NliTask", "one label for two texts"),
    "qa": TaskEntry("elmokit.tasks.qa", "QaTask", "the answer to a question in a paragraph"),
    "coref": TaskEntry("elmokit.tasks.coref", "CorefTask", "mentions of the same thing"),
}


def find_task(name: str) -> "Task[Any]":
    """Return the task of this name; InputError if there is none."""
    if name not in TASKS:
        raise InputError(f"There is no task {name!r}; choose one of {', '.join(TASKS)}.")
    entry = TASKS[name]
    return getattr(import_module(entry.module), entry.class_name)()
