"""Write the word vectors that an experiment reads, and no others, to a small file.

    python recipes/excerpt_vectors.py vectors.bin controls --tasks qa --data data -o vectors-qa.bin

An experiment reads tens of thousands of words; a file of vectors can have millions. Where the whole
file cannot be uploaded, cut out what is read: the words of the training samples, the held-out parts
and the dev sets, and with ``--test`` those of the test files. If the file is a fastText model,
words that it lacks get the vectors of their n-grams. On the files that were read, scores are those
of the whole file. The hash is another, so its runs are not shared with those of the whole file.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from elmokit.cli.error_messages import exit_on_user_error
from elmokit.errors import InputError
from elmokit.experiments.definitions import Experiment, find_experiment
from elmokit.experiments.inputs import (
    find_data,
    find_test_files,
    model_path,
    write_run_files,
)
from elmokit.files.atomic import check_target
from elmokit.files.location import counted
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.task_bilm import TaskBiLM
from elmokit.tasks.registry import find_task
from elmokit.vectors.vector_files import check_suffix, read_vectors_of, write_vectors


def words_of(
    experiment: Experiment,
    tasks: tuple[str, ...],
    data_dir: Path,
    *,
    test_dir: Path | None = None,
    model: str | None = None,
) -> Iterator[str]:
    """Yield the words that the runs of an experiment look up, with repetitions.

    Raises:
        InputError: for an unknown task, or if the experiment trains none.
        FileNotFoundError, FormatError, InputError: as `run_experiment`, for its data and model.
    """
    if not experiment.tasks:
        raise InputError(
            f"{experiment.name} trains no task: it measures vectors of all words. Give the whole "
            "file with --vectors."
        )
    chosen, path = experiment.select_tasks(tasks), model_path(experiment, model)
    tokenizer = TaskBiLM.open(InputSettings(embeddings="static"), str(path)).tokenizer
    files = find_data(data_dir, chosen)
    tests = {} if test_dir is None else find_test_files(test_dir, chosen, files, path)
    for settings in chosen:
        task = find_task(settings.task).in_units(settings.units)
        with tempfile.TemporaryDirectory() as directory:
            made = write_run_files(files[settings.dataset], Path(directory), settings)
            read = [(made.train, True), (made.held_out, False), (made.dev, False)]
            if settings.dataset in tests:
                read.append((tests[settings.dataset].path, False))
            for file, training in read:
                examples = task.read(file, training=training, tokenize=tokenizer.tokenize)
                yield from task.words(examples)


def main() -> None:
    """Parse, check, read, write, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("vectors", type=Path, help="word2vec, GloVe or fastText")
    parser.add_argument("experiments", nargs="+", help="names of experiments, such as table1")
    parser.add_argument("--tasks", default="", metavar="A,B", help="only these; default: all")
    parser.add_argument("--data", type=Path, default=Path("data"), help="default: data")
    parser.add_argument("--test", type=Path, help="directory of test files")
    parser.add_argument("--model", help="directory or name; default: that of the language")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="ends in .bin, .txt or .vec"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    given = parser.parse_args()
    check_suffix(given.output)
    check_target(given.output, inputs=[given.vectors], overwrite=given.overwrite)
    tasks = tuple(name.strip() for name in given.tasks.split(",") if name.strip())
    experiments = [find_experiment(name) for name in given.experiments]
    if len({one.language for one in experiments}) > 1:
        raise InputError("The experiments are of several languages. Make a file for each of them.")
    words = {
        word
        for experiment in experiments
        for word in words_of(experiment, tasks, given.data, test_dir=given.test, model=given.model)
    }
    if divided := sorted(word for word in words if any(mark in word for mark in " \t\n\0")):
        raise InputError(
            f"The data have words with a blank, such as {divided[0]!r}, which a file of word "
            "vectors cannot hold. Use the whole file."
        )
    found = read_vectors_of(given.vectors, words)
    write_vectors(given.output, found.words, found.values[2:])
    vectors = counted(len(found.words), "vector")
    print(f"{given.output}: {vectors} for {counted(len(words), 'word')}")


if __name__ == "__main__":
    with exit_on_user_error():
        main()
