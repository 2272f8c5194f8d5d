"""The routes of `elmokit serve`, and what they have in common."""

import asyncio
import base64
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router

from elmokit.embed.embedder import Embedder
from elmokit.inference.contexts import NUM_BOUNDARIES
from elmokit.text.word_vocab import WordVocab
from elmokit.version import __version__
from elmokit.web.api import schemas
from elmokit.web.api.batcher import Batcher, Job
from elmokit.web.api.computations import Embedding, Prediction, Text, Tokens
from elmokit.web.server import BODY, RequestError, as_json, json_response
from elmokit.web.startup import ServerSettings

if TYPE_CHECKING:
    from elmokit.tasks.runs.task_run import TaskRun

_JSON = "application/json"
_TINY = np.finfo(np.float32).tiny


class Metrics:
    """The totals that /metrics shows."""

    def __init__(self) -> None:
        self._totals = defaultdict[str, float](float)

    def add(self, name: str, value: float = 1) -> None:
        """Add to a total; ``name`` may end in a label in braces."""
        self._totals[name] += value

    def render(self, *, queue_size: int) -> str:
        """Return all in the text format of Prometheus."""
        lines = [f"te_queue_size {queue_size}"]
        lines += (f"{name} {total:.15g}" for name, total in sorted(self._totals.items()))
        return "\n".join(lines) + "\n"


class Service:
    """Answers requests about one model, and about task models by the names of their routes."""

    def __init__(
        self, embedder: Embedder, settings: ServerSettings, *, vocab: WordVocab | None = None,
        runs: "Mapping[str, TaskRun] | None" = None,
    ) -> None:  # fmt: skip
        self._embedder, self._settings = embedder, settings
        self.metrics = Metrics()
        self.batcher = Batcher(batch_tokens=settings.batch_tokens)
        self._embedding = Embedding(embedder, settings)
        self._tokens = Tokens(embedder, vocab, settings)
        self._predictions = {name: Prediction(run, settings) for name, run in (runs or {}).items()}

    def router(self) -> Router:
        """Return the routes as an ASGI application."""
        routes = [
            ("POST", "/", self._embed), ("POST", "/embed", self._embed),
            ("POST", "/embed_all", self._embed_all), ("POST", "/tokenize", self._tokenize),
            ("POST", "/predict/{run}", self._predict),
            ("POST", "/embeddings", self._openai_embeddings),
            ("POST", "/v1/embeddings", self._openai_embeddings),
            ("GET", "/v1/models", self._openai_models),
            ("GET", "/info", self._info), ("GET", "/health", self._health),
            ("GET", "/metrics", self._metrics),
        ]  # fmt: skip
        return Router(
            [Route(path, answer, methods=[method]) for method, path, answer in routes],
            lifespan=self._lifespan,
        )

    def count_error(self, error: RequestError) -> None:
        """Count a request that was refused or failed."""
        self.metrics.add(f'te_request_failure{{err="{error.tei_type}"}}')

    # --- Text Embeddings Inference

    async def _embed(self, request: Request) -> Response:
        asked = self._read(schemas.EmbedRequest, request)
        job = await self._compute(
            self._embedding, asked.inputs, truncate=asked.truncate, pooled=True
        )
        return await _answer(partial(numbers, self._pooled(job, normalize=asked.normalize)))

    async def _embed_all(self, request: Request) -> Response:
        asked = self._read(schemas.EmbedRequest, request)
        if asked.normalize is not None:
            raise RequestError(422, "`normalize` is for pooled vectors: /embed has it.")
        job = await self._compute(self._embedding, asked.inputs, truncate=asked.truncate)

        async def pieces() -> AsyncIterator[bytes]:  # as text it is five times as large
            for number, vectors in enumerate(job.results):
                job.results[number] = None
                yield (b"," if number else b"[") + await asyncio.to_thread(numbers, vectors)
            yield b"]"

        return StreamingResponse(pieces(), media_type=_JSON)

    async def _tokenize(self, request: Request) -> Response:
        asked = self._read(schemas.TokenizeRequest, request)
        job = await self._compute(self._tokens, asked.inputs)
        texts = job.results
        if not asked.add_special_tokens:
            texts = [tokens[1:-1] for tokens in texts]
        return await _answer(lambda: _array(map(as_json, texts)))

    async def _predict(self, request: Request) -> Response:
        name = request.path_params["run"]
        prediction = self._predictions.get(name)
        if prediction is None:
            known = ", ".join(self._predictions) or "none"
            raise RequestError(404, f"There is no run {name[:60]!r}: this server has {known}.")
        asked = self._read(schemas.PredictRequest, request)
        job = await self._compute(prediction, asked.inputs)
        if isinstance(asked.inputs, str):
            return json_response(job.results[0])
        return await _answer(lambda: _array(map(as_json, job.results)))

    async def _info(self, request: Request) -> Response:
        settings = self._settings
        made_by = self._embedder.metadata(layers=self._embedding.word_layers, state=settings.state)
        runs = {name: prediction.run for name, prediction in self._predictions.items()}
        return json_response({
            "model_id": settings.name, "model_sha": made_by["model_hash"],
            "model_dtype": made_by["precision"],
            "model_type": {"embedding": {"pooling": self._embedding.pool.name}},
            "max_concurrent_requests": settings.max_requests,
            "max_input_length": settings.max_words, "max_batch_tokens": settings.batch_tokens,
            "max_client_batch_size": settings.max_texts, "auto_truncate": False,
            "tokenization_workers": 1, "version": __version__,
            "embedding": made_by | {"normalize": settings.normalize},
            "predict": {
                name: {"task": run.task.name, "labels": run.labels} for name, run in runs.items()
            },
        })  # fmt: skip

    async def _health(self, request: Request) -> Response:
        self.batcher.check_running()
        return json_response({})

    async def _metrics(self, request: Request) -> Response:
        text = self.metrics.render(queue_size=self.batcher.queue_size)
        return Response(text, media_type="text/plain; version=0.0.4")

    # --- OpenAI

    async def _openai_embeddings(self, request: Request) -> Response:
        asked = self._read(schemas.OpenAIRequest, request)
        name = self._settings.name
        if asked.model not in (None, name):
            raise RequestError(
                404, f"There is no model {asked.model[:60]!r}: this server has {name!r}.",
                parameter="model", code="model_not_found",
            )  # fmt: skip
        job = await self._compute(self._embedding, asked.input, field="input", pooled=True)
        num_words = sum(job.sizes) - NUM_BOUNDARIES * len(job.sizes)
        how = {"num_words": num_words, "is_base64": asked.encoding_format == "base64"}
        vectors = self._pooled(job, normalize=None)
        return await _answer(partial(openai_list, vectors, name, **how))

    async def _openai_models(self, request: Request) -> Response:
        model = {"id": self._settings.name, "object": "model", "created": 0, "owned_by": "elmokit"}
        return json_response({"object": "list", "data": [model]})

    # --- what they share

    async def _compute(
        self, computation: Any, inputs: Any, *, field: str = "inputs",
        truncate: bool | None = None, pooled: bool = False,
    ) -> Job:  # fmt: skip
        single = isinstance(inputs, str)
        values: Sequence[Any] = [inputs] if single else inputs
        label = f'{{method="{"single" if single else "batch"}"}}'
        started = time.perf_counter()
        self.metrics.add(f"te_request_count{label}")
        if not values:
            raise RequestError(422, f"`{field}` is an empty list.", parameter=field)
        most = self._settings.max_texts
        if len(values) > most:
            message = f"`{field}` holds {len(values):,} texts: a request has at most {most:,}."
            raise RequestError(413, message, parameter=field)
        texts = [
            Text(value, f"`{field}`" if single else f"`{field}[{i}]`", truncate, pooled)
            for i, value in enumerate(values)
        ]
        job = await self.batcher.submit(
            computation, texts, timeout_seconds=self._settings.timeout_seconds,
            max_tokens=self._settings.max_request_tokens,
        )  # fmt: skip
        self.metrics.add("te_request_duration_sum", time.perf_counter() - started)
        self.metrics.add("te_request_duration_count")
        self.metrics.add(f"te_request_success{label}")
        return job

    def _pooled(self, job: Job, *, normalize: bool | None) -> np.ndarray:
        vectors = np.stack(job.results)
        if self._settings.normalize if normalize is None else normalize:
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            vectors /= np.maximum(lengths, _TINY)[:, np.newaxis]
        return vectors

    def _read(self, schema: type[schemas.Schema], request: Request) -> schemas.Schema:
        asked = schemas.parse(schema, request.scope["state"][BODY])
        dimensions, own = getattr(asked, "dimensions", None), self._embedder.dim
        if dimensions not in (None, own):
            raise RequestError(
                422, f"`dimensions` must be {own} or left out, got {dimensions}: vectors of this "
                "model cannot be shortened.",
                parameter="dimensions",
            )  # fmt: skip
        return asked

    @asynccontextmanager
    async def _lifespan(self, app: object) -> AsyncIterator[None]:
        async with self.batcher.running():
            yield


async def _answer(encode: Callable[[], bytes]) -> Response:
    """Encode an answer of any size in a thread, so that others are answered meanwhile."""
    return Response(await asyncio.to_thread(encode), media_type=_JSON)


def numbers(vectors: np.ndarray) -> bytes:
    """Return rows of vectors as JSON whose numbers read back as the same float32."""
    return _array(to_json(row.tolist()) for row in vectors)


def openai_list(vectors: np.ndarray, model: str, *, num_words: int, is_base64: bool) -> bytes:
    """Return vectors in the dialect of OpenAI, as numbers or in base64."""

    def entry(index: int, vector: np.ndarray) -> bytes:
        plain = vector.astype("<f4").tobytes()
        embedding = base64.b64encode(plain).decode() if is_base64 else vector.tolist()
        return to_json({"object": "embedding", "index": index, "embedding": embedding})

    usage = {"prompt_tokens": num_words, "total_tokens": num_words}
    rest = to_json({"model": model, "usage": usage})[1:]
    entries = _array(entry(index, vector) for index, vector in enumerate(vectors))
    return b"".join((b'{"object":"list","data":', entries, b",", rest))


def _array(items: Iterable[bytes]) -> bytes:
    """Join JSON values; one call for all of them would let no other thread run meanwhile."""
    return b"[%s]" % b",".join(items)
