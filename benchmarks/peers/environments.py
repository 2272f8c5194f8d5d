"""The peers' own virtual environments, made on request and then used without a network."""

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

TORCH = "torch==2.13.0"

ENVIRONMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    # AllenNLP's declared dependencies exclude every torch of the last years: it is taken without
    # them, and the worker stands in for the few modules that its ELMo imports and never uses.
    "allennlp": ((TORCH, "numpy", "h5py"), ("--no-deps", "allennlp==2.10.1")),
    # The last TensorFlow with Keras 2 inside, whose LSTM cells simple_elmo is built of.
    "simple_elmo": (("tensorflow-cpu==2.15.1", "simple_elmo==0.9.2"),),
    "minilm": ((TORCH, "sentence-transformers==6.2.0"),),
}
"""For each environment what `pip install` is given, a call each."""


def environment_python(name: str, folder: Path) -> Path:
    """Return the interpreter of an environment.

    Raises:
        FileNotFoundError: if it was not made, or made for other requirements.
    """
    if not _is_ready(name, folder):
        raise FileNotFoundError(
            f"no environment {name!r} in {folder}: run once with --make-environments (needs a "
            "package index)"
        )
    return folder / name / "bin" / "python"


def make_environment(name: str, folder: Path) -> None:
    """Make an environment, unless it is there already; nothing else is touched.

    Raises:
        RuntimeError: if pip fails.
    """
    if _is_ready(name, folder):
        return
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    venv.create(target, with_pip=True)
    for requirements in ENVIRONMENTS[name]:
        command = [target / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements]
        done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            shutil.rmtree(target)
            raise RuntimeError(f"pip install {' '.join(requirements)}: {done.stderr[-2000:]}")
    _marker(name, folder).write_text(json.dumps(ENVIRONMENTS[name]), encoding="utf-8")


def _marker(name: str, folder: Path) -> Path:
    return folder / name / "requirements.json"


def _is_ready(name: str, folder: Path) -> bool:
    marker = _marker(name, folder)
    made_for = json.loads(marker.read_text(encoding="utf-8")) if marker.exists() else None
    return made_for == [list(requirements) for requirements in ENVIRONMENTS[name]]
