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
    return marker.exists() and marker.read_text("utf-8") == json.dumps(ENVIRONMENTS[name])


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
    (target / "requirements.json").write_text(json.dumps(ENVIRONMENTS[name]), encoding="utf-8")


class PeerError(Exception):
    """A program could not do what it was asked; the reason is on stderr."""


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

    @property
    def is_ours(self) -> bool:
        return self.script == "ours"


class Worker:
    """A running program, which answers each line of JSON with another."""

    def __init__(self, program: Program, work: str, threads: int) -> None:
        python: str | Path = sys.executable
        if program.environment is not None:
            if not is_ready(program.environment):
                raise PeerError(
                    f"no environment {program.environment!r}: "
                    "run bench_embed.py --make-environments once"
                )
            python = ENVIRONMENTS_DIR / program.environment / "bin" / "python"
        fixed = {
            "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2",
            "OMP_NUM_THREADS": str(threads),
        }  # fmt: skip
        self._process = subprocess.Popen(
            [python, HERE / f"{program.script}.py", work],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
            env={**os.environ, **fixed, **program.variables},
        )  # fmt: skip

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer = json.loads(line or '{"error": "the program ended"}')
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def close(self) -> None:
        """End the program."""
        self._process.communicate()


Workers = dict[str, Worker]


def start_all(
    programs: Mapping[str, Program],
    work: str,
    options: argparse.Namespace,
    load: Callable[[Program, Worker], dict[str, Any]],
) -> tuple[Workers, dict[str, Any]]:
    """Start and load the programs of ``--only``; say their versions, and why others cannot."""
    workers: Workers = {}
    versions, skipped = {}, {}
    for name, program in programs.items():
        if options.only and not any(part in name for part in options.only):
            continue
        try:
            workers[name] = Worker(program, work, options.threads)
            versions[name] = load(program, workers[name])["versions"]
        except PeerError as error:
            skipped[name] = str(error)
            if name in workers:
                workers.pop(name).close()
    return workers, {"versions": versions, "skipped": skipped}


OURS = {
    f"elmokit {precision}": Program(script="ours", settings={"precision": precision})
    for precision in ("fp32", "bf16", "int8")
}
ALLENNLP = {"script": "allennlp_elmo", "environment": "allennlp"}
SIMPLE_ELMO = {"script": "tensorflow_elmo", "environment": "simple_elmo"}
EMBEDDERS = {
    **OURS,
    "elmokit without kernels": Program(script="ours", variables={"ELMOKIT_NATIVE": "0"}),
    "AllenNLP": Program(**ALLENNLP),
    "AllenNLP + vocab_to_cache": Program(
        **ALLENNLP, settings={"vocab_to_cache": True}, knows_words=True
    ),
    "plain nn.LSTM stack": Program(script="plain"),
    "simple_elmo": Program(**SIMPLE_ELMO),
}
"""What `bench_embed.py` measures, in the order of its tables."""
TRAINERS = {
    **{name: program for name, program in OURS.items() if "int8" not in name},
    "plain nn.LSTM stack": Program(script="plain", settings={"distinct_words": False}),
    "plain, distinct words": Program(script="plain", settings={"distinct_words": True}),
    "bilm-tf (in simple_elmo)": Program(**SIMPLE_ELMO, equal=False),
}
"""What `bench_train.py` measures; bilm-tf draws its own weights and candidates."""
