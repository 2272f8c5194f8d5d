"""The programs that are measured: ours and what a user would run instead.

Every run is a process that reads one request and writes one answer, the peers in virtual
environments that are made on request and then used without a network.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import CACHE_DIR, run_measured

ENVIRONMENTS_DIR = CACHE_DIR / "environments"
ENVIRONMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    # AllenNLP's declared dependencies exclude every torch of the last years: it is taken without
    # them, and its program stands in for the few modules that its ELMo imports and never uses.
    "allennlp": (("torch==2.13.0", "numpy", "h5py"), ("--no-deps", "allennlp==2.10.1")),
    # The last TensorFlow with Keras 2 inside, whose LSTM cells simple_elmo is built of.
    "simple_elmo": (("tensorflow-cpu==2.15.1", "simple_elmo==0.9.2"),),
}
"""For each environment what `pip install` is given, a call each."""
FIXED = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"}


def make_environments() -> None:
    """Make the environments anew."""
    for name, calls in ENVIRONMENTS.items():
        target = ENVIRONMENTS_DIR / name
        shutil.rmtree(target, ignore_errors=True)
        venv.create(target, with_pip=True)
        for requirements in calls:
            command = [target / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements]
            subprocess.run(command, stdout=sys.stderr, check=True)


@dataclass(frozen=True, kw_only=True)
class Program:
    """How to start one of the programs of a table."""

    script: str
    """File in this folder, without its suffix; ``embed`` or ``train`` is its first argument."""
    environment: str | None = None
    """Its own environment; none: that of the benchmark."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Part of every request."""
    variables: dict[str, str] = field(default_factory=dict)
    """Of its process."""

    def ask(self, work: str, *, threads: int, **request: Any) -> dict[str, Any]:
        """Run the program on a request and return its answer, with the ``peak_mb`` of memory."""
        python = Path(sys.executable)
        if self.environment is not None:
            python = ENVIRONMENTS_DIR / self.environment / "bin" / "python"
        if not python.exists():
            raise RuntimeError("no environment: run bench_embed.py --make-environments once")
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, name) for name in ("request.json", "answer.json")]
            content = json.dumps({"threads": threads, **self.settings, **request})
            paths[0].write_text(content, encoding="utf-8")
            done = run_measured(
                [python, Path(__file__).with_name(f"{self.script}.py"), work, *paths],
                env={**os.environ, **FIXED, "OMP_NUM_THREADS": str(threads), **self.variables},
            )
            answer = json.loads(paths[1].read_text(encoding="utf-8"))
        return {**answer, "peak_mb": round(done.peak_bytes / 2**20)}


OURS = {
    f"elmokit {precision}": Program(script="ours", settings={"precision": precision})
    for precision in ("fp32", "bf16", "int8")
}
EMBEDDERS = {
    **OURS,
    "elmokit without kernels": Program(
        script="ours", settings={"precision": "fp32"}, variables={"ELMOKIT_NATIVE": "0"}
    ),
    "AllenNLP": Program(script="allennlp_elmo", environment="allennlp"),
    "AllenNLP + vocab_to_cache": Program(
        script="allennlp_elmo", environment="allennlp", settings={"vocab_to_cache": True}
    ),
    "simple_elmo": Program(script="simple_elmo_peer", environment="simple_elmo"),
}
"""What `bench_embed.py` measures, in the order of its results."""
TRAINERS = {
    **{name: program for name, program in OURS.items() if "int8" not in name},
    "plain nn.LSTM stack": Program(script="plain"),
}
"""What `bench_train.py` measures."""


def select(programs: dict[str, Program], only: list[str] | None) -> dict[str, Program]:
    """Return the programs whose name has one of some parts; without parts, all."""
    return {
        name: program for name, program in programs.items()
        if not only or any(part in name for part in only)
    }  # fmt: skip
