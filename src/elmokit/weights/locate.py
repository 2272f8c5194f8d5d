"""From a path or name to a directory: of a model, or of a packaged task model."""

import logging
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from elmokit.files.atomic import previous_of

log = logging.getLogger(__name__)

CONFIG_NAME = "config.json"
"""The file that identifies a model directory."""
RUN_CONFIG_NAME = "task.json"
"""The file that identifies the run of a task."""
OPTIONS_NAME = "options.json"
"""The file that identifies a model in the original's format, by default."""
DEFAULT_MODEL = "en"
"""The packaged model used if none is named."""
PACKAGED_DATA = Path(__file__).parent.parent / "data"
PACKAGED_MODELS, PACKAGED_RUNS = PACKAGED_DATA / "models", PACKAGED_DATA / "taggers"


@dataclass(frozen=True)
class DirectoryKind:
    """A kind of directory, of which the package has some by name."""

    noun: str
    folder: Path
    """In the package."""
    mark: str
    """The file that identifies the directory."""
    advice: str

    def names(self) -> list[str]:
        return sorted(path.parent.name for path in self.folder.glob(f"*/{self.mark}"))

    def find(self, name_or_path: str | os.PathLike[str]) -> Path:
        """Return a directory by path or by the name of a packaged one.

        A directory of this kind with the name of a packaged one takes precedence, with a warning.
        """
        path, name = Path(os.path.expanduser(name_or_path)), os.fspath(name_or_path)
        is_packaged, is_own = name in self.names(), (path / self.mark).exists()
        if is_packaged and is_own:
            _warn_of_two(self.noun, path.absolute())
        if is_own or (path.exists() and not is_packaged):
            return path
        if is_packaged:
            return self.folder / name
        place = "not there"
        if (previous := previous_of(path)).exists():
            place += f"; a save was interrupted: the previous {self.noun} is {previous}, rename it"
        raise FileNotFoundError(
            f"There is no {self.noun} {name!r}. Looked for:\n"
            f"  a directory {path.absolute()}: {place}\n"
            f"  a {self.noun} of this name in the package: it has {', '.join(self.names())}\n"
            f"Check the path; {self.advice}"
        )


MODELS = DirectoryKind(
    "model", PACKAGED_MODELS, CONFIG_NAME,
    "`elmokit pretrain CORPUS -o DIR` makes a model directory.",
)  # fmt: skip
TASK_RUNS = DirectoryKind(
    "task run", PACKAGED_RUNS, RUN_CONFIG_NAME,
    "`elmokit train TASK --data D --model M -o RUN` makes a run.",
)  # fmt: skip


def packaged_models() -> list[str]:
    return MODELS.names()


def find_model(name_or_path: str | os.PathLike[str] | None = None) -> Path:
    """Return a model directory as `DirectoryKind.find`; default: the English one."""
    return PACKAGED_MODELS / DEFAULT_MODEL if name_or_path is None else MODELS.find(name_or_path)


@cache
def _warn_of_two(noun: str, path: Path) -> None:
    message = "using %s, not the packaged %s %r. For that one, work in another folder."
    log.warning(message, path, noun, path.name)


def lasting_name(directory: Path) -> str:
    """Return a name to find the model again: that of a packaged model, else the full path."""
    resolved = directory.resolve()
    return resolved.name if resolved.parent == PACKAGED_MODELS.resolve() else str(resolved)


def path_of(lasting: str) -> str:
    """Return the directory for a `lasting_name`, from any working directory."""
    return str(PACKAGED_MODELS / lasting) if lasting in packaged_models() else lasting
