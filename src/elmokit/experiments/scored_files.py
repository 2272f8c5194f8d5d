"""The test files of an experiment."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import FormatError, InputError
from elmokit.experiments.inputs import find_all
from elmokit.experiments.settings import TaskSettings
from elmokit.files.hashing import file_sha256
from elmokit.probes.data import SplitFiles
from elmokit.tasks.formats.splits import find_split
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.task_bilm import TaskBiLM
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.scoring import check_labels


@dataclass(frozen=True)
class HashedFile:
    """A test file and what identifies its scores."""

    path: Path
    sha256: str


def find_test_files(
    test_dir: Path, tasks: Sequence[TaskSettings], data: Mapping[str, SplitFiles], model: Path
) -> dict[str, HashedFile]:
    """Return the test files of all data sets, by folder, after reading each of them once.

    A folder has one file with ``test`` in its name, or a single file of any name.

    Raises:
        FileNotFoundError: if files are missing; names all of them.
        InputError: if a file is damaged, of another task, or the training file.
    """
    paths = find_all(test_dir, tasks, _find_test_file, "one test… file", option="--test")
    tokenizer = TaskBiLM.open(InputSettings(embeddings="static"), str(model)).tokenizer
    found = {}
    for settings in tasks:
        path, training = paths[settings.dataset], data[settings.dataset].train
        file = found[settings.dataset] = HashedFile(path, file_sha256(path))
        task = find_task(settings.task).in_units(settings.units)
        with _expected(settings):
            if file.sha256 == file_sha256(training):
                raise InputError(f"{path} has the same content as the training file {training}.")
            examples = task.read(path, training=False, tokenize=tokenizer.tokenize)
            if not examples:
                raise InputError(f"{path} has no example.")
            if task.labels_are_answers and task.labels(examples):
                known = task.read(training, training=True, tokenize=tokenizer.tokenize)
                check_labels(path, task, task.labels(known), examples)
    return found


def _find_test_file(folder: Path, suffixes: Sequence[str]) -> Path:
    files = [path for path in folder.iterdir() if path.is_file() and path.name[0] != "."]
    return files[0] if len(files) == 1 else find_split(folder, "test", suffixes)


@contextmanager
def _expected(settings: TaskSettings) -> Iterator[None]:
    """Say what belongs into a file that cannot be used; the error names the file."""
    try:
        yield
    except (FormatError, InputError) as error:
        raise InputError(
            f"--test: not a test file of the task {settings.task} (expected: {settings.content}): "
            f"{error}"
        ) from error
