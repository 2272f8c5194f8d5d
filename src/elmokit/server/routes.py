"""The routes, and what they have in common."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from elmokit.embed.embedder import Embedder
from elmokit.inference.batching import NUM_BOUNDARIES
from elmokit.server.answers import (
    RequestError,
    as_request_error,
    error_response,
    json_response,
    numbers,
    openai_embeddings,
    texts_as_json,
)
from elmokit.server.batcher import Batcher, Computation, Job
from elmokit.server.computations import Embedding, Prediction, Text, Tokens
from elmokit.server.gate import BODY, HAS_GONE
from elmokit.server.home_page import home_page
from elmokit.server.metrics import Metrics
from elmokit.server.schemas import (
    EmbedRequest,
    OpenAIRequest,
    PredictRequest,
    TokenizeRequest,
    parse,
)
from elmokit.server.settings import ServerSettings
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.text.word_vocab import WordVocab
from elmokit.version import __version__

_JSON = "application/json"
_TINY = np.finfo(np.float32).tiny


class Service:
    """Answers requests about one model, and about task models.

    Args:
        embedder: Computes vectors.
        settings: Options and limits.
        vocab: For the ids of /tokenize.
        runs: Trained task models by the names of their routes.
    """

    def __init__(
        self,
        embedder: Embedder,
        settings: ServerSettings,
        *,
        vocab: WordVocab | None = None,
        runs: Mapping[str, TaskRun] | None = None,
    ) -> None:
        self._embedder, self._settings = embedder, settings
        self.metrics = Metrics()
        self.batcher = Batcher(
            batch_tokens=settings.batch_tokens, wait_seconds=settings.batch_wait_seconds,
            metrics=self.metrics,
        )  # fmt: skip
        self._embedding = Embedding(embedder, settings)
        self._tokens = Tokens(embedder, vocab, settings)
        self._predictions = {name: Prediction(run, settings) for name, run in (runs or {}).items()}

    def app(self) -> Starlette:
        """Return the routes as an ASGI application."""
        posts = {
            "/": self.embed, "/embed": self.embed, "/embed_all": self.embed_all,
            "/tokenize": self.tokenize, "/predict/{run}": self.predict,
            "/v1/embeddings": self.openai_embeddings, "/embeddings": self.openai_embeddings,
        }  # fmt: skip
        gets = {
            "/": self.home,
            "/info": self.info, "/health": self.health, "/metrics": self.show_metrics,
            "/v1/models": self.openai_models, "/v1/models/{model:path}": self.openai_model,
        }  # fmt: skip
        routes = [Route(path, self._caught(f), methods=["POST"]) for path, f in posts.items()]
        routes += [Route(path, self._caught(f), methods=["GET"]) for path, f in gets.items()]
        handlers: Any = {HTTPException: self._no_route}
        return Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)

    # --- Text Embeddings Inference

    async def embed(self, request: Request) -> Response:
        """Return a vector for each text."""
        given = parse(EmbedRequest, request.scope["state"][BODY])
        self._check_dimensions(given.dimensions)
        job = await self._compute(
            request, self._embedding, given.inputs, truncate=given.truncate is True, pooled=True
        )
        vectors = self._pooled(job, normalize=given.normalize)
        return await _answer(job, partial(numbers, vectors))

    async def embed_all(self, request: Request) -> Response:
        """Return the vectors of each text's words."""
        given = parse(EmbedRequest, request.scope["state"][BODY])
        self._check_dimensions(given.dimensions)
        if given.normalize is not None:
            raise RequestError(422, "`normalize` is for pooled vectors: /embed has it.")
        job = await self._compute(
            request, self._embedding, given.inputs, truncate=given.truncate is True
        )

        async def pieces() -> AsyncIterator[bytes]:  # as text it is five times as large
            for number in range(len(job.texts)):
                found = await asyncio.to_thread(numbers, job.results.pop(number))
                yield (b"," if number else b"[") + found
            yield b"]"

        return StreamingResponse(pieces(), headers=_times(job), media_type=_JSON)

    async def tokenize(self, request: Request) -> Response:
        """Return the tokens of each text."""
        given = parse(TokenizeRequest, request.scope["state"][BODY])
        job = await self._compute(request, self._tokens, given.inputs)
        texts = _results(job)
        if not given.add_special_tokens:
            texts = [tokens[1:-1] for tokens in texts]
        return await _answer(job, partial(texts_as_json, texts))

    async def predict(self, request: Request) -> Response:
        """Return the answer of a task model for each text, or for the only one."""
        name = request.path_params["run"]
        prediction = self._predictions.get(name)
        if prediction is None:
            known = ", ".join(self._predictions) or "none"
            raise RequestError(404, f"There is no run {name[:60]!r}: this server has {known}.")
        given = parse(PredictRequest, request.scope["state"][BODY])
        job = await self._compute(request, prediction, given.inputs)
        answers = _results(job)
        if isinstance(given.inputs, str):
            return json_response(answers[0], headers=_times(job))
        return await _answer(job, partial(texts_as_json, answers))

    async def info(self, request: Request) -> Response:
        """Return what is served, and the limits."""
        settings = self._settings
        made_by = self._embedder.metadata(layers=settings.layers, state=settings.state)
        return json_response(
            {
                "model_id": settings.name,
                "model_sha": made_by["model_hash"],
                "model_dtype": made_by["precision"],
                "model_type": {"embedding": {"pooling": settings.pooling}},
                "max_concurrent_requests": settings.max_requests,
                "max_input_length": settings.max_words,
                "max_batch_tokens": settings.batch_tokens,
                "max_client_batch_size": settings.max_texts,
                "auto_truncate": False,
                "tokenization_workers": 1,
                "version": __version__,
                "embedding": made_by | {"normalize": settings.normalize},
                "predict": {
                    name: {"task": one.run.task.name, "labels": one.run.labels}
                    for name, one in self._predictions.items()
                },
            }
        )

    async def home(self, request: Request) -> Response:
        """Return a page for people."""
        page = home_page(self._settings.name, url=str(request.base_url), runs=self._predictions)
        return HTMLResponse(page)

    async def health(self, request: Request) -> Response:
        """Return whether texts are being computed."""
        self.batcher.check_alive()
        return json_response({})

    async def show_metrics(self, request: Request) -> Response:
        """Return counts and durations."""
        text = self.metrics.render(queue_size=self.batcher.queue_size)
        return Response(text, media_type="text/plain; version=0.0.4")

    # --- OpenAI

    async def openai_embeddings(self, request: Request) -> Response:
        """Return a vector for each text."""
        given = parse(OpenAIRequest, request.scope["state"][BODY])
        if given.model not in (None, self._settings.name):
            raise RequestError(
                404,
                f"There is no model {given.model[:60]!r}: this server has {self._settings.name!r}.",
                parameter="model", code="model_not_found",
            )  # fmt: skip
        self._check_dimensions(given.dimensions)
        job = await self._compute(request, self._embedding, given.input, field="input", pooled=True)
        vectors = self._pooled(job, normalize=None)
        encode = partial(
            openai_embeddings, vectors, model=self._settings.name,
            num_words=sum(job.sizes) - NUM_BOUNDARIES * len(job.sizes),
            as_text=given.encoding_format == "base64",
        )  # fmt: skip
        return await _answer(job, encode)

    async def openai_models(self, request: Request) -> Response:
        """Return the name of the model."""
        return json_response({"object": "list", "data": [self._openai_name()]})

    async def openai_model(self, request: Request) -> Response:
        """Return the name of the model, if it is that which is asked for."""
        asked = request.path_params["model"]
        if asked != self._settings.name:
            raise RequestError(404, f"There is no model {asked[:60]!r}: see /v1/models.")
        return json_response(self._openai_name())

    def _openai_name(self) -> dict[str, Any]:
        return {"id": self._settings.name, "object": "model", "created": 0, "owned_by": "elmokit"}

    # --- what they share

    async def _compute(
        self,
        request: Request,
        computation: Computation,
        inputs: Any,
        *,
        field: str = "inputs",
        truncate: bool | None = None,
        pooled: bool = False,
    ) -> Job:
        single = isinstance(inputs, str)
        values: Sequence[Any] = [inputs] if single else inputs
        num_texts = None if single else len(values)
        self.metrics.count(texts=num_texts)
        if not values:
            raise RequestError(422, f"`{field}` is an empty list.", parameter=field)
        if len(values) > self._settings.max_texts:
            raise RequestError(
                413,
                f"`{field}` holds {len(values):,} texts: a request has at most "
                f"{self._settings.max_texts:,}.",
                parameter=field,
            )
        texts = [
            Text(value, f"`{field}`" if single else f"`{field}[{i}]`", truncate, pooled)
            for i, value in enumerate(values)
        ]
        job = await self.batcher.submit(
            computation, texts, timeout_seconds=self._settings.timeout_seconds,
            is_wanted=lambda: HAS_GONE not in request.scope["state"],
        )  # fmt: skip
        self._measure(job, num_texts)
        return job

    def _measure(self, job: Job, num_texts: int | None) -> None:
        observe = self.metrics.observe
        observe("te_request_duration", time.perf_counter() - job.arrived)
        observe("te_request_tokenization_duration", job.tokenization_seconds)
        observe("te_request_queue_duration", job.queue_seconds or 0.0)
        observe("te_request_inference_duration", job.inference_seconds)
        for size in job.sizes:
            observe("te_request_input_length", size)
        self.metrics.count(texts=num_texts, success=True)

    def _pooled(self, job: Job, *, normalize: bool | None) -> np.ndarray:
        vectors = np.stack(_results(job))
        if self._settings.normalize if normalize is None else normalize:
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            vectors /= np.maximum(lengths, _TINY)[:, np.newaxis]
        return vectors

    def _check_dimensions(self, dimensions: int | None) -> None:
        if dimensions not in (None, self._embedder.dim):
            raise RequestError(
                422,
                f"`dimensions` must be {self._embedder.dim} or left out, got {dimensions}: vectors "
                "of this model cannot be shortened.",
                parameter="dimensions",
            )

    def _caught(
        self, answer: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def caught(request: Request) -> Response:
            try:
                return await answer(request)
            except Exception as error:
                found = as_request_error(error)
                self.count_error(found)
                return error_response(request.url.path, found)

        return caught

    def count_error(self, error: RequestError) -> None:
        """Count a request that was refused or failed."""
        self.metrics.fail(error.tei_type)

    async def _no_route(self, request: Request, error: HTTPException) -> Response:
        path = request.url.path
        messages = {
            404: f"There is no route {path[:60]!r}.",
            405: f"{path[:60]} does not take {request.method}.",
        }
        message = messages.get(error.status_code, error.detail)
        response = error_response(path, RequestError(error.status_code, message))
        response.headers.update(error.headers or {})  # of 405, the methods that are allowed
        return response

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        demo = files("elmokit").joinpath("data/demo/en.txt").read_text(encoding="utf-8")
        max_words = self._settings.max_words
        lines = [line.split()[:max_words] for line in demo.splitlines()[:80] if line.strip()]
        sample = [Text(line, "the demo text") for line in lines]
        await asyncio.to_thread(self.batcher.measure, self._embedding, sample)
        self.batcher.start()
        yield


async def _answer(job: Job, encode: Callable[[], bytes]) -> Response:
    """Encode an answer of any size in a thread, so that others are answered meanwhile."""
    content = await asyncio.to_thread(encode)
    return Response(content, headers=_times(job), media_type=_JSON)


def _results(job: Job) -> list[Any]:
    return [job.results[number] for number in range(len(job.texts))]


def _times(job: Job) -> dict[str, str]:
    """Return the headers that Text Embeddings Inference adds; times in milliseconds."""
    seconds = {
        "x-total-time": time.perf_counter() - job.arrived,
        "x-tokenization-time": job.tokenization_seconds,
        "x-queue-time": job.queue_seconds or 0.0,
        "x-inference-time": job.inference_seconds,
    }
    times = {name: str(round(1000 * value)) for name, value in seconds.items()}
    return times | {"x-compute-tokens": str(sum(job.sizes))}
