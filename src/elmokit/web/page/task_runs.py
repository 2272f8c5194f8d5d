"""Task runs that answer one text after the other, for the page and for `elmokit serve`."""

import logging
from os import PathLike
from pathlib import Path

from elmokit.errors import FormatError
from elmokit.files.byte_stream import ByteStream
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.vectors import fasttext_file

log = logging.getLogger(__name__)

_HEAD_BYTES = 1 << 16


def load_task_run(run_dir: str | PathLike[str], *, device: str = "auto") -> TaskRun:
    """Load a run with all of its static vectors: else each new word would read their file again.

    A fastText model is still read for each new word, with a warning: it makes vectors of words that
    it does not list. If the vectors are gone, or those of another file, a warning says so, and
    words that are new to the run get none.

    Raises:
        FileNotFoundError, FormatError, ConfigError: as `TaskRun.load`.
    """
    run = TaskRun.load(run_dir, device=device)
    if not run.reads_vectors:
        return run
    file = Path(run.metadata["vectors"]["path"])
    if file.is_file() and fasttext_file.recognizes(ByteStream(file).ahead(_HEAD_BYTES)):
        log.warning("%s: the fastText model %s is read again for each new word", run_dir, file)
        return run
    try:
        run.keep_vectors()
    except (FileNotFoundError, FormatError) as error:
        log.warning("%s: new words get no static vector: %s", run_dir, error)
    return run
