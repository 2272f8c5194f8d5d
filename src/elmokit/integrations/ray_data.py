"""Embedding on a Ray cluster (extra ``ray``): data sets, and the files of `elmokit embed`.

`embed_dataset` adds vectors to a Ray data set where its blocks are, without a limit on their
number. `RayLines` is for `elmokit.embed.job.embed_lines`: one process reads the text and writes one
file, the same as without Ray.
"""

import logging
import os
import socket
from collections.abc import Generator, Iterable
from functools import cached_property
from os import PathLike
from typing import Any

from elmokit.embed.embedder import Embedder
from elmokit.embed.line_embedder import EmbeddedLine, OwnLines, splitter_for
from elmokit.embed.options import EmbedOptions
from elmokit.embed.streaming import BATCHES_PER_BUFFER
from elmokit.errors import ElmokitError, InputError, MissingExtraError
from elmokit.inference.precision import check_precision
from elmokit.inference.state import LSTMState
from elmokit.integrations.arrow_table import TableEmbedder
from elmokit.jobs.identity import changes
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.worker_processes import BLOCKS_AHEAD, blocks_of_lines
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import PretrainedBiLM, load_model

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
try:
    import ray.data  # pyright: ignore[reportMissingImports]
    from ray.util import ActorPool  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtraError("ray", extra="ray") from error

CHARACTERS_A_WORD = 4
"""To guess the words of a block; English words with a space have more, Korean morphemes fewer."""
AnyModel = str | PathLike[str] | PretrainedBiLM | None
"""As for `Embedder.load`; it is sent to the actors."""


def embed_dataset(
    dataset: "ray.data.Dataset",
    model: AnyModel = None,
    *,
    column: str = "text",
    options: EmbedOptions | None = None,
    precision: str = "fp32",
    num_actors: int | tuple[int, int] = 2,
    num_cpus: int = 1,
    num_gpus: float = 0.0,
    batch_size: int = 1024,
) -> "ray.data.Dataset":
    """Add the vectors of a text column to a data set, lazily, on a pool of actors.

    Args:
        dataset: A sentence a row.
        model: As for `Embedder.load`; it is sent to the actors.
        column: The texts.
        options: As for `TableEmbedder`; default: the average of the layers.
        precision: As for `Embedder.load`.
        num_actors: Or the fewest and the most of a pool that grows and shrinks.
        num_cpus: Cores of each actor, and its CPU threads.
        num_gpus: GPUs of each; 0.25 lets four share one. With 0 the CPU computes.
        batch_size: Rows computed together.

    Returns:
        The data set with the columns ``tokens`` and one per layer. Ray starts an actor that dies
        again and repeats its batches.

    Raises:
        InputError: for invalid options, while the data set is read.
    """
    fewest, most = (num_actors, num_actors) if isinstance(num_actors, int) else num_actors
    settings = {
        "model": _loaded(model), "column": column, "options": options, "precision": precision,
        "device": _device(num_gpus), "threads": num_cpus,
    }  # fmt: skip
    return dataset.map_batches(
        TableEmbedder, fn_constructor_kwargs=settings, batch_format="pyarrow",
        batch_size=batch_size, num_cpus=num_cpus, num_gpus=num_gpus or None,
        compute=ray.data.ActorPoolStrategy(min_size=fewest, max_size=most),
    )  # fmt: skip


class RayLines:
    """Computes on actors of a Ray cluster, as `elmokit.embed.job.embed_lines` wants it.

    Lines go out in blocks and come back in order; an actor that dies is started again, and its
    block is computed again. Actors that do not compute the same way (another processor, no
    compiler) are an error, because the file would not be that of one process. Leaving a ``with``
    statement ends the actors, and the cluster if it was started here.

    Args:
        model: As for `Embedder.load`; it is sent to the actors.
        options: As for `elmokit.embed.job.embed_files`; not ``state="carry"``.
        precision: As for `Embedder.load`.
        num_actors: Actors; default: 2.
        address: As for ``ray.init``; default: ``RAY_ADDRESS``, else a new cluster on this machine.
        num_cpus: Cores of each actor, and its CPU threads.
        num_gpus: GPUs of each; 0.25 lets four share one.
    """

    def __init__(
        self,
        model: AnyModel = None,
        options: EmbedOptions | None = None,
        *,
        precision: str = "fp32",
        num_actors: int = 2,
        address: str | None = None,
        num_cpus: int = 1,
        num_gpus: float = 0.0,
    ) -> None:
        self.options = options or EmbedOptions()
        if self.options.state == "carry":
            raise InputError(
                'state="carry" reads the text as one stream, which one process must do: leave out '
                "--engine ray, or give another state."
            )
        loaded = _loaded(model)
        check_precision(precision)  # here, before a cluster is started for nothing
        self.options.check_values(num_layers=loaded.num_layers)
        self.num_layers, self.num_actors = loaded.num_layers, num_actors
        self.splitter: NormalizingTokenizer = splitter_for(
            loaded.tokenizer, loaded.config.char_vocab.normalization, self.options
        )
        # last: whatever is wrong with the settings is said before a cluster starts
        self._is_own = _connect(address, num_actors * num_cpus, num_actors * num_gpus)
        actor_class = ray.remote(_BlockEmbedder).options(
            num_cpus=num_cpus, num_gpus=num_gpus, max_restarts=-1, max_task_retries=-1
        )
        self._model = ray.put(loaded)  # stays there: an actor that starts again reads it again
        load = {"precision": precision, "device": _device(num_gpus), "num_threads": num_cpus}
        self.actors = [
            actor_class.remote(self._model, self.options, load) for _ in range(num_actors)
        ]
        self._metadata: dict[str, Any] = _result(lambda: ray.get(self.actors[0].metadata.remote()))

    def __enter__(self) -> "RayLines":
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self.actors:
            ray.kill(actor)
        if self._is_own:
            ray.shutdown()

    def metadata(self) -> dict[str, Any]:
        """Return how the vectors are made, which an actor says."""
        return dict(self._metadata)

    def stream(
        self, lines: Iterable[str], *, initial_state: LSTMState | None = None
    ) -> Generator[EmbeddedLine, None, None]:
        """Yield words and vectors of the lines, in order; some blocks are read ahead."""
        # not a Ray data set, which would be made of all lines at once; this holds some blocks
        pool = ActorPool(self.actors)
        characters = BATCHES_PER_BUFFER * self.options.batch_tokens * CHARACTERS_A_WORD
        waiting = 0
        for block in blocks_of_lines(lines, characters):
            pool.submit(lambda actor, texts: actor.embed.remote(texts), block)
            waiting += 1
            if waiting > BLOCKS_AHEAD * self.num_actors:
                yield from self._next_lines(pool)
                waiting -= 1
        while pool.has_next():
            yield from self._next_lines(pool)

    def _next_lines(self, pool: Any) -> list[EmbeddedLine]:
        metadata, host, lines = _result(pool.get_next)
        if differences := changes(self._metadata, metadata):
            raise InputError(
                f"The worker on {host} does not compute as the first worker does "
                f"({'; '.join(map(str, differences))}), so the file would mix their results. "
                "Install the same software and a compiler on all machines."
            )
        return lines


class _BlockEmbedder:
    """What an actor holds; built by its first call, since Ray hides errors of constructors."""

    def __init__(self, model: PretrainedBiLM, options: EmbedOptions, load: dict[str, Any]) -> None:
        self._model, self._options, self._load = model, options, load

    @cached_property
    def _lines(self) -> OwnLines:
        return OwnLines(Embedder.load(self._model, **self._load), self._options)

    def metadata(self) -> dict[str, Any]:
        return self._lines.metadata()

    def embed(self, texts: list[str]) -> tuple[dict[str, Any], str, list[EmbeddedLine]]:
        return self.metadata(), ray.util.get_node_ip_address(), list(self._lines.stream(texts))


def _connect(address: str | None, num_cpus: int, num_gpus: float) -> bool:
    """Connect to a cluster unless this process is; return whether it was started here."""
    was_connected, is_new = ray.is_initialized(), False
    if not was_connected:
        address = address or os.environ.get("RAY_ADDRESS") or "local"
        is_new = address == "local"
        _init(address, max(os.cpu_count() or 1, num_cpus) if is_new else None)
    resources = ray.cluster_resources()
    cpus, gpus = resources.get("CPU", 0), resources.get("GPU", 0)
    if gpus < num_gpus or cpus < num_cpus:
        if not was_connected:
            ray.shutdown()
        raise InputError(  # a worker without room would be waited for without end
            f"The workers need {num_cpus} CPUs and {num_gpus:g} GPUs, but the cluster has "
            f"{cpus:g} and {gpus:g}. Give fewer --workers, --threads or --gpus, or the --address "
            "of a larger cluster."
        )
    return is_new


def _init(address: str, num_cpus: int | None) -> None:
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    cores = {} if num_cpus is None else {"num_cpus": num_cpus, "include_dashboard": False}
    try:
        if colon and port.isdecimal():  # Ray itself tries for minutes
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        ray.init(address=address, logging_level=logging.ERROR, **cores)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            f"No Ray cluster at {address!r}: {str(error).splitlines()[0]} Start one with `ray "
            "start --head`, or leave out --address for a new one on this machine."
        ) from error


def _result(get: Any) -> Any:
    """Return what an actor answers; its errors of elmokit come back as themselves."""
    try:
        return get()
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)
        raise cause if isinstance(cause, ElmokitError) else error from None


def _loaded(model: AnyModel) -> PretrainedBiLM:
    return model if isinstance(model, PretrainedBiLM) else load_model(find_model(model))


def _device(num_gpus: float) -> str:
    return "cuda" if num_gpus else "cpu"
