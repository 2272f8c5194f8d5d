"""The files of `elmokit embed`, computed on a Ray cluster (extra ``ray``)."""

import os
from collections.abc import Generator, Iterable
from typing import Any

from elmokit.embed.embedder import Embedder
from elmokit.embed.numbered_lines import LocalLineEmbedder
from elmokit.embed.options import EmbedOptions
from elmokit.embed.streaming import EmbeddedSentence
from elmokit.errors import InputError, needs_extra
from elmokit.inference.device import check_precision
from elmokit.inference.layers_and_states import LSTMState
from elmokit.integrations.shared import AnyModel
from elmokit.jobs.identity import changes
from elmokit.text.sentences import BLOCKS_AHEAD, blocks_of_lines
from elmokit.text.tokenizers.registry import tokenizer_for_model
from elmokit.weights.stored_bilm import StoredBiLM, open_bilm

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
with needs_extra("ray", module="ray"):
    import ray  # pyright: ignore[reportMissingImports]
    from ray.util import ActorPool  # pyright: ignore[reportMissingImports]

CHARACTERS_PER_TOKEN = 16  # four batches of words of four characters: the size of a block


class RayLineEmbedder:
    """`LocalLineEmbedder` on actors of a cluster: one process reads the text and writes one file.

    Ray starts an actor that dies again. Leaving a ``with`` statement ends the actors, and the
    cluster if it was started here. ``address`` is as for ``ray.init``, by default ``RAY_ADDRESS``,
    else a new cluster on this machine.
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
        self.options, self.num_actors = options or EmbedOptions(), num_actors
        if self.options.state == "carry":
            raise InputError('state="carry" reads the text as one stream: leave out --engine ray.')
        # whatever is wrong with the settings is said before a cluster starts
        bilm, precision = open_bilm(model), check_precision(precision)
        self.options.check_values(num_layers=bilm.num_layers)
        self.num_layers = bilm.num_layers
        tokenizer_for_model(bilm.tokenizer, self.options.tokenizer)
        self._is_own = _connect(address, num_actors * num_cpus, num_actors * num_gpus)
        actor = ray.remote(_BlockEmbedder).options(
            num_cpus=num_cpus, num_gpus=num_gpus, max_restarts=-1, max_task_retries=-1
        )
        self._model = ray.put(bilm)  # stays there: an actor that starts again reads it again
        device = "cuda" if num_gpus else "cpu"
        load = {"precision": precision, "device": device, "num_threads": num_cpus}
        self.actors = [actor.remote(self._model, self.options, load) for _ in range(num_actors)]
        self._metadata, _ = ray.get(self.actors[0].embed.remote([]))

    def __enter__(self) -> "RayLineEmbedder":
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self.actors:
            ray.kill(actor)
        if self._is_own:
            ray.shutdown()

    def metadata(self) -> dict[str, Any]:
        return dict(self._metadata)

    def stream(
        self, lines: Iterable[str], *, initial_state: LSTMState | None = None
    ) -> Generator[EmbeddedSentence, None, None]:
        """Yield words and vectors of the lines, in order; some blocks are read ahead."""
        # Not a Ray data set, which would be made of all lines at once. A block is a few batches:
        # the vectors of all blocks under way are in memory.
        pool, size = ActorPool(self.actors), CHARACTERS_PER_TOKEN * self.options.batch_tokens
        for number, block in enumerate(blocks_of_lines(lines, size)):
            pool.submit(lambda actor, texts: actor.embed.remote(texts), block)
            if number >= BLOCKS_AHEAD * self.num_actors:
                yield from self._next_lines(pool)
        while pool.has_next():
            yield from self._next_lines(pool)

    def _next_lines(self, pool: Any) -> list[EmbeddedSentence]:
        metadata, lines = pool.get_next()
        if differences := changes(self._metadata, metadata):
            differ = "; ".join(map(str, differences))
            raise InputError(f"A worker's software differs from the first one's: {differ}.")
        return lines


class _BlockEmbedder:
    def __init__(self, model: StoredBiLM, options: EmbedOptions, load: dict[str, Any]) -> None:
        self._lines = LocalLineEmbedder(Embedder.load(model, **load), options)

    def embed(self, texts: list[str]) -> tuple[dict[str, Any], list[EmbeddedSentence]]:
        return self._lines.metadata(), list(self._lines.stream(texts))


def _connect(address: str | None, num_cpus: int, num_gpus: float) -> bool:
    """Connect to a cluster unless this process is; return whether it was started here."""
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    is_new = address == "local" and not ray.is_initialized()
    cores = {"num_cpus": max(os.cpu_count() or 1, num_cpus)} if is_new else {}
    try:
        if not ray.is_initialized():
            ray.init(address=address, logging_level="ERROR", **cores)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"No Ray cluster at {address!r} (--address): {error}") from error
    resources = ray.cluster_resources()
    if resources.get("GPU", 0) < num_gpus or resources.get("CPU", 0) < num_cpus:
        # a worker without room would be waited for without end
        need = f"The workers need {num_cpus} CPUs and {num_gpus:g} GPUs"
        raise InputError(f"{need}, and the cluster has {resources}. Give fewer --workers.")
    return is_new
