"""The programs that are measured: ours and what a user would run instead.

Each works in a process of its own, the peers in virtual environments that are made on request and
then used without a network. Only one program works at a time.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENTS_DIR = Path.home() / ".cache" / "elmokit-bench" / "environments"
ENVIRONMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    # AllenNLP's declared dependencies exclude every torch of the last years: it is taken without
    # them, and the worker stands in for the few modules that its ELMo imports and never uses.
    "allennlp": (("torch==2.13.0", "numpy", "h5py"), ("--no-deps", "allennlp==2.10.1")),
    # The last TensorFlow with Keras 2 inside, whose LSTM cells simple_elmo is built of.
    "simple_elmo": (("tensorflow-cpu==2.15.1", "simple_elmo==0.9.2"),),
}
"""For each environment what `pip install` is given, a call each."""


def is_ready(name: str) -> bool:
    """Tell whether an environment was made, and for these requirements."""
    marker = ENVIRONMENTS_DIR / name / "requirements.json"
    made_for = json.loads(marker.read_text(encoding="utf-8")) if marker.exists() else None
    return made_for == [list(requirements) for requirements in ENVIRONMENTS[name]]


def make_environment(name: str) -> None:
    """Make an environment, unless it is there already; nothing else is touched."""
    if is_ready(name):
        return
    target = ENVIRONMENTS_DIR / name
    shutil.rmtree(target, ignore_errors=True)
    venv.create(target, with_pip=True)
    for requirements in ENVIRONMENTS[name]:
        command = [target / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements]
        subprocess.run(command, stdout=sys.stderr, check=True)
    marker = target / "requirements.json"
    marker.write_text(json.dumps(ENVIRONMENTS[name]), encoding="utf-8")


class PeerError(Exception):
    """A program could not do what it was asked."""


class Worker:
    """A running program.

    Args:
        command: Interpreter of its environment, script and arguments.
        variables: Environment variables for it.
    """

    def __init__(self, command: list[str | Path], variables: Mapping[str, str]) -> None:
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        offline = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            env={**os.environ, **offline, **variables},
        )

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its answer; raise `PeerError` if there is none."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process.wait()
            self._log.seek(0)
            raise PeerError(f"the program ended:\n{''.join(self._log.readlines()[-12:])}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._log.close()


@dataclass(frozen=True, kw_only=True)
class Program:
    """How to start one of the programs of a table."""

    script: str
    """File in this folder, without its suffix; ``embed`` or ``train`` is its argument."""
    environment: str | None = None
    """Its own environment; none: that of the benchmark."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Passed when it loads."""
    equal: bool = True
    """Whether it computes what ours computes."""
    knows_words: bool = False
    """Whether the words to come are worked on before the clock starts."""
    variables: dict[str, str] = field(default_factory=dict)
    """Environment variables of its process."""

    @property
    def is_ours(self) -> bool:
        """Whether this is elmokit."""
        return self.script == "ours"

    def start(self, work: str, options: argparse.Namespace) -> Worker:
        """Start it, in the environment that was made for it."""
        python: str | Path = sys.executable
        if self.environment is not None:
            if not is_ready(self.environment):
                raise PeerError(
                    f"no environment {self.environment!r}: run --make-environments once"
                )
            python = ENVIRONMENTS_DIR / self.environment / "bin" / "python"
        variables = {"OMP_NUM_THREADS": str(options.threads), **self.variables}
        return Worker([python, HERE / f"{self.script}.py", work], variables)


def start_all(
    programs: Mapping[str, Program],
    work: str,
    options: argparse.Namespace,
    load: Callable[[Program, Worker], dict[str, Any]],
) -> tuple[dict[str, Worker], dict[str, dict[str, str]], dict[str, str]]:
    """Start and load the programs of ``--only``; return them, versions, and why others cannot."""
    workers, versions, skipped = {}, {}, {}
    for name, program in programs.items():
        if options.only and not any(part in name for part in options.only):
            continue
        worker = None
        try:
            worker = program.start(work, options)
            versions[name] = load(program, worker)["versions"]
            workers[name] = worker
        except PeerError as error:
            skipped[name] = str(error)
            if worker is not None:
                worker.close()
    return workers, versions, skipped


EMBEDDERS = {
    **{
        f"elmokit {precision}": Program(script="ours", settings={"precision": precision})
        for precision in ("fp32", "bf16", "int8")
    },
    "elmokit without kernels": Program(script="ours", variables={"ELMOKIT_NATIVE": "0"}),
    "AllenNLP": Program(script="allennlp_elmo", environment="allennlp"),
    "AllenNLP + vocab_to_cache": Program(
        script="allennlp_elmo",
        environment="allennlp",
        settings={"vocab_to_cache": True},
        knows_words=True,
    ),
    "plain nn.LSTM stack": Program(script="plain"),
    "simple_elmo": Program(script="tensorflow_elmo", environment="simple_elmo"),
}
"""What `bench_embed.py` measures, in the order of its tables."""
TRAINERS = {
    **{
        f"elmokit {precision}": Program(script="ours", settings={"precision": precision})
        for precision in ("fp32", "bf16")
    },
    "plain nn.LSTM stack": Program(script="plain", settings={"distinct_words": False}),
    "plain, distinct words": Program(script="plain", settings={"distinct_words": True}),
    "bilm-tf (in simple_elmo)": Program(
        script="tensorflow_elmo", environment="simple_elmo", equal=False
    ),
}
"""What `bench_train.py` measures; bilm-tf draws its own weights and candidates."""
