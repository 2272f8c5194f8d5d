"""The tasks, by the names that users type; their modules are imported when they are used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from elmokit.errors import find_named

if TYPE_CHECKING:
    from elmokit.tasks.task import Task


EmbeddingKind = Literal[
    "elmo", "static", "static_output", "static_projected", "layer0", "random", "top", "average",
    "none",
]  # fmt: skip
"""How a word is represented, besides its characters.

``elmo``: a learned mixture of all layers. ``layer0``, ``top``: one layer. ``average``: the plain
mean of the layers. ``random``: as ``elmo``, from an untrained biLM. Each of these also reads the
static vector if there is one. ``static``: the static vector alone. ``static_output``: the static
vector at the input and, where a mixture is read at the output, there too. ``static_projected``: the
static vector, and wherever a mixture is read a learned linear map of it that is as wide. ``none``:
nothing.
"""


class TaskEntry(NamedTuple):
    """Where a task is, and what it finds, for help texts."""

    module: str
    class_name: str
    summary: str


TASKS = {
    "pos": TaskEntry("elmokit.tasks.tagging", "PosTask", "parts of speech"),
    "ner": TaskEntry("elmokit.tasks.tagging", "NerTask", "named entities"),
    "srl": TaskEntry("elmokit.tasks.tagging", "SrlTask", "semantic roles of one predicate"),
    "sentiment": TaskEntry("elmokit.tasks.classification", "SentimentTask", "one label for a text"),
    "nli": TaskEntry("elmokit.tasks.classification", "NliTask", "one label for two texts"),
    "qa": TaskEntry("elmokit.tasks.qa", "QaTask", "the answer to a question in a paragraph"),
    "coref": TaskEntry("elmokit.tasks.coref", "CorefTask", "mentions of the same thing"),
}


def find_task(name: str) -> "Task[Any]":
    """Return the task of this name; InputError if there is none."""
    entry = find_named(TASKS, name, what="task")
    return getattr(import_module(entry.module), entry.class_name)()
