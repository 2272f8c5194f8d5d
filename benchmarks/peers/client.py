"""Our side of the conversation with the measured programs; only one of them works at a time."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PEERS_DIR = Path(__file__).parent
LAST_LINES = 12


class PeerError(Exception):
    """A program could not do what it was asked."""


class Worker:
    """A program in its own process and environment.

    Args:
        python: Interpreter of its environment.
        script: File beside this one.
        threads: Threads it may use.
        variables: Environment variables for it.

    Raises:
        PeerError: from `ask`, if the program fails.
    """

    def __init__(
        self, python: Path, script: str, *, threads: int, variables: Mapping[str, str] | None = None
    ) -> None:
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        settings = {"OMP_NUM_THREADS": str(threads), "TF_CPP_MIN_LOG_LEVEL": "2"}
        offline = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        self._process = subprocess.Popen(
            [python, PEERS_DIR / script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            env={**os.environ, **settings, **offline, **(variables or {})},
        )

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
        if not line:
            raise PeerError(f"the program ended:\n{self._last_lines()}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def run(self) -> float:
        """Let it do its work once; the seconds are its own."""
        return float(self.ask("run")["seconds"])

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def _last_lines(self) -> str:
        self._process.wait()
        self._log.seek(0)
        return "".join(self._log.readlines()[-LAST_LINES:])


def close_all(workers: Sequence[Worker]) -> None:
    """End programs."""
    for worker in workers:
        worker.close()
