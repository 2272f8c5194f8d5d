"""Embedding on a Ray cluster (extra ``ray``): data sets, and the files of `elmokit embed`.

`embed_dataset` adds vectors to a Ray data set where its blocks are, without a limit on their
number. `RayLines` is for `elmokit.embed.job.embed_lines`: one process reads the text and writes one
file, the same as without Ray.
"""

import os
from collections.abc import Generator, Iterable
from functools import cached_property, partial
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from elmokit.bilm.bilm import BiLMState
from elmokit.embed.embedder import Embedder
from elmokit.embed.line_embedder import EmbeddedLine, OwnLines, splitter_for
from elmokit.embed.options import EmbedOptions
from elmokit.embed.sif import SIF
from elmokit.embed.streaming import BATCHES_PER_BUFFER
from elmokit.errors import InputError
from elmokit.files.changes import changes
from elmokit.inference.precision import check_precision
from elmokit.integrations.arrow_table import TableEmbedder
from elmokit.integrations.ray_pool import RayPool, connect, ended_on_error
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.worker_processes import blocks_of_lines, results_in_order
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import PretrainedBiLM, load_model

try:
    import ray.data  # pyright: ignore[reportMissingImports]
except ImportError as error:
    from elmokit.errors import MissingExtraError

    raise MissingExtraError("ray", extra="ray") from error

CHARACTERS_A_WORD = 4
"""To guess the words of a block; English words with a space have more, Korean morphemes fewer."""


def embed_dataset(
    dataset: "ray.data.Dataset",
    model: str | PathLike[str] | PretrainedBiLM | None = None,
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
        TableEmbedder,
        fn_constructor_kwargs=settings,
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=ray.data.ActorPoolStrategy(min_size=fewest, max_size=most),
        num_cpus=num_cpus,
        num_gpus=num_gpus or None,
    )


class RayLines:
    """Computes on actors of a Ray cluster, as `elmokit.embed.job.embed_lines` wants it.

    Lines go out in blocks and come back in order. Actors that do not compute the same way (another
    processor, no compiler) are an error, because the file would not be that of one process. Leaving
    a ``with`` statement ends the actors.

    Args:
        model: As for `Embedder.load`; it is sent to the actors.
        options: As for `elmokit.embed.job.embed_files`.
        precision: As for `Embedder.load`.
        num_actors: Default: as many as the cluster has cores, or GPUs, for.
        address, num_cpus, num_gpus: As for `RayPool`.

    Raises:
        InputError: for invalid options and ``state="carry"``; as `connect`.
    """

    def __init__(
        self,
        model: str | PathLike[str] | PretrainedBiLM | None = None,
        options: EmbedOptions | None = None,
        *,
        precision: str = "fp32",
        num_actors: int | None = None,
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
        check_precision(precision)
        loaded = _loaded(model)
        self.options.check_values(num_layers=loaded.num_layers)
        self.num_layers = loaded.num_layers
        normalization = loaded.config.char_vocab.normalization
        self._splitter = splitter_for(loaded.tokenizer, normalization, self.options)
        make = partial(_BlockEmbedder, loaded, self.options, precision, _device(num_gpus), num_cpus)
        count = num_actors or 1
        cpus = max(os.cpu_count() or 1, count * num_cpus)
        self._is_own = connect(address, num_cpus=cpus, num_gpus=count * num_gpus)
        with ended_on_error(self._is_own):
            self.num_actors = num_actors or _room(num_cpus, num_gpus)
            self.pool = RayPool(self.num_actors, make, num_cpus=num_cpus, num_gpus=num_gpus)

    def __enter__(self) -> "RayLines":
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.close()
        if self._is_own:
            ray.shutdown()

    @cached_property
    def _metadata(self) -> dict[str, Any]:
        return self.pool.submit([]).result().metadata

    @property
    def splitter(self) -> NormalizingTokenizer:
        """What splits lines into words."""
        return self._splitter

    def metadata(self) -> dict[str, Any]:
        """Return how the vectors are made, which an actor says."""
        return dict(self._metadata)

    def stream(
        self, lines: Iterable[str], *, initial_state: BiLMState | None = None
    ) -> Generator[EmbeddedLine, None, None]:
        """Yield words and vectors of the lines, in order; some blocks are read ahead.

        Raises:
            InputError: if an actor computes otherwise than the first.
        """
        characters = BATCHES_PER_BUFFER * self.options.batch_tokens * CHARACTERS_A_WORD
        blocks = blocks_of_lines(lines, characters)
        for block in results_in_order(self.pool, blocks, self.num_actors):
            if found := changes(self._metadata, block.metadata):
                raise InputError(
                    f"The worker on {block.host} does not compute as the first worker does "
                    f"({'; '.join(map(str, found))}), so the file would mix their results. Install "
                    "the same software and a compiler on all machines, or use machines of one kind."
                )
            yield from block.lines()


class _EmbeddedBlock(NamedTuple):
    metadata: dict[str, Any]
    host: str
    words: list[list[str]]
    values: np.ndarray
    """Of all lines together: (L, W, 2D) or (W, 2D), or pooled vectors one after another."""
    is_pooled: bool

    def lines(self) -> Iterable[EmbeddedLine]:
        if self.is_pooled:
            for words, vector in zip(self.words, self.values, strict=True):
                yield EmbeddedLine(words, vector, None)
            return
        begin = 0
        for words in self.words:
            end = begin + len(words)
            yield EmbeddedLine(words, self.values[..., begin:end, :], None)
            begin = end


class _BlockEmbedder:
    """What an actor holds."""

    def __init__(
        self,
        model: PretrainedBiLM,
        options: EmbedOptions,
        precision: str,
        device: str,
        threads: int,
    ) -> None:
        embedder = Embedder.load(model, device=device, precision=precision, num_threads=threads)
        self._lines = OwnLines(embedder, options)

    def __call__(self, texts: list[str]) -> _EmbeddedBlock:
        lines = list(self._lines.stream(texts))
        is_pooled = self._lines.options.pool not in (None, SIF)
        vectors = [line.vectors for line in lines]
        together = np.stack if is_pooled else partial(np.concatenate, axis=-2)
        return _EmbeddedBlock(
            self._lines.metadata(),
            ray.util.get_node_ip_address(),
            [line.words for line in lines],
            together(vectors) if vectors else np.zeros(0),
            is_pooled,
        )


def _loaded(model: str | PathLike[str] | PretrainedBiLM | None) -> PretrainedBiLM:
    return model if isinstance(model, PretrainedBiLM) else load_model(find_model(model))


def _device(num_gpus: float) -> str:
    return "cuda" if num_gpus else "cpu"


def _room(num_cpus: int, num_gpus: float) -> int:
    """Return how many actors the cluster has room for."""
    has = ray.cluster_resources()
    rooms: list[float] = [has.get("CPU", 0) // num_cpus]
    if num_gpus:
        rooms.append(has.get("GPU", 0) // num_gpus)
    if min(rooms) < 1:
        raise InputError(
            f"The cluster has {has.get('CPU', 0):g} CPUs and {has.get('GPU', 0):g} GPUs, too few "
            "for one worker. Give --workers to wait until it grows, or give each worker fewer."
        )
    return int(min(rooms))
