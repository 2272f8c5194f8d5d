"""The programs that are measured: ours and what a user would run instead."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers.client import PeerError, Worker, close_all
from peers.environments import ENVIRONMENTS, environment_python, make_environment

__all__ = ["ENVIRONMENTS", "PeerError", "Program", "Worker", "close_all", "make_environment"]


@dataclass(frozen=True, kw_only=True)
class Program:
    """How to start one of the programs of a table."""

    script: str
    """File in this folder."""
    environment: str | None = None
    """Its own environment; none: that of the benchmark."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Passed when it loads."""
    equal: bool = True
    """Whether it computes what ours computes."""
    knows_words: bool = False
    """Whether the words to come are worked on before the clock starts."""
    is_ours: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    """Environment variables of its process."""

    def start(self, environments: Path, *, threads: int) -> Worker:
        """Start it.

        Raises:
            FileNotFoundError: if its environment was not made.
        """
        python = Path(sys.executable)
        if self.environment is not None:
            python = environment_python(self.environment, environments)
        return Worker(python, self.script, threads=threads, variables=self.variables)


EMBEDDERS = {
    **{
        f"elmokit {precision}": Program(
            script="elmokit_embed.py", settings={"precision": precision}, is_ours=True
        )
        for precision in ("fp32", "bf16", "int8")
    },
    "elmokit without kernels": Program(
        script="elmokit_embed.py", variables={"ELMOKIT_NATIVE": "0"}, is_ours=True
    ),
    "AllenNLP": Program(script="allennlp_embed.py", environment="allennlp"),
    "AllenNLP + vocab_to_cache": Program(
        script="allennlp_embed.py",
        environment="allennlp",
        settings={"vocab_to_cache": True},
        knows_words=True,
    ),
    "plain nn.LSTM stack": Program(script="plain_embed.py"),
    "simple_elmo": Program(script="simple_elmo_embed.py", environment="simple_elmo"),
    "MiniLM-L6": Program(script="minilm_embed.py", environment="minilm", equal=False),
}
"""What `bench_embed.py` measures, in the order of its tables."""

TRAINERS = {
    **{
        f"elmokit {precision}": Program(
            script="elmokit_train.py", settings={"precision": precision}, is_ours=True
        )
        for precision in ("fp32", "bf16")
    },
    "plain nn.LSTM stack": Program(script="plain_train.py", settings={"distinct_words": False}),
    "plain, distinct words": Program(script="plain_train.py", settings={"distinct_words": True}),
    "bilm-tf (in simple_elmo)": Program(
        script="bilm_tf_train.py", environment="simple_elmo", equal=False
    ),
}
"""What `bench_train.py` measures; bilm-tf draws its own weights and candidates."""
