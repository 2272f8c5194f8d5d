"""The routes, and what they have in common."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from html import escape
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
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.text.word_vocab import WordVocab
from elmokit.version import __version__
from elmokit.web.api import answers, schemas
from elmokit.web.api.answers import RequestError, json_response
from elmokit.web.api.batcher import Batcher, Computation, Job
from elmokit.web.api.computations import Embedding, Prediction, Text, Tokens
from elmokit.web.api.metrics import Metrics
from elmokit.web.api.settings import ServerSettings

BODY, HAS_GONE = "elmokit_body", "elmokit_has_gone"
"""Of a request's state: what was posted; whether its client has left."""

_JSON = "application/json"
_TINY = np.finfo(np.float32).tiny
_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}td{padding:.1rem 1rem .1rem 0}pre{overflow-x:auto}"
)


class Service:
    """Answers requests about one model, and about task models by the names of their routes."""

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
        routes = [
            Route(path, self._caught(answer), methods=[method])
            for method, path, answer, *_ in (*_ROUTES, *_FURTHER_ROUTES)
        ]
        handlers: Any = {HTTPException: self._no_route}
        return Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)

    # --- Text Embeddings Inference

    async def _embed(self, request: Request) -> Response:
        asked = self._read(schemas.EmbedRequest, request)
        job = await self._compute(
            request, self._embedding, asked.inputs, truncate=asked.truncate, pooled=True
        )
        vectors = self._pooled(job, normalize=asked.normalize)
        return await _answer(job, partial(answers.numbers, vectors))

    async def _embed_all(self, request: Request) -> Response:
        asked = self._read(schemas.EmbedRequest, request)
        if asked.normalize is not None:
            raise RequestError(422, "`normalize` is for pooled vectors: /embed has it.")
        job = await self._compute(request, self._embedding, asked.inputs, truncate=asked.truncate)

        async def pieces() -> AsyncIterator[bytes]:  # as text it is five times as large
            for number, vectors in enumerate(job.results):
                job.results[number] = None
                yield (b"," if number else b"[") + await asyncio.to_thread(answers.numbers, vectors)
            yield b"]"

        return StreamingResponse(pieces(), headers=_times(job), media_type=_JSON)

    async def _tokenize(self, request: Request) -> Response:
        asked = self._read(schemas.TokenizeRequest, request)
        job = await self._compute(request, self._tokens, asked.inputs)
        texts = job.results
        if not asked.add_special_tokens:
            texts = [tokens[1:-1] for tokens in texts]
        return await _answer(job, partial(answers.texts_as_json, texts))

    async def _predict(self, request: Request) -> Response:
        name = request.path_params["run"]
        prediction = self._predictions.get(name)
        if prediction is None:
            known = ", ".join(self._predictions) or "none"
            raise RequestError(404, f"There is no run {name[:60]!r}: this server has {known}.")
        asked = self._read(schemas.PredictRequest, request)
        job = await self._compute(request, prediction, asked.inputs)
        if isinstance(asked.inputs, str):
            return json_response(job.results[0], headers=_times(job))
        return await _answer(job, partial(answers.texts_as_json, job.results))

    async def _info(self, request: Request) -> Response:
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
                    name: {"task": prediction.run.task.name, "labels": prediction.run.labels}
                    for name, prediction in self._predictions.items()
                },
            }
        )

    async def _home(self, request: Request) -> Response:
        name, url = self._settings.name, str(request.base_url)
        return HTMLResponse(_home_page(name, url=url, runs=self._predictions))

    async def _health(self, request: Request) -> Response:
        self.batcher.check_running()
        return json_response({})

    async def _metrics(self, request: Request) -> Response:
        text = self.metrics.render(queue_size=self.batcher.queue_size)
        return Response(text, media_type="text/plain; version=0.0.4")

    # --- OpenAI

    async def _openai_embeddings(self, request: Request) -> Response:
        asked = self._read(schemas.OpenAIRequest, request)
        if asked.model not in (None, self._settings.name):
            raise RequestError(
                404,
                f"There is no model {asked.model[:60]!r}: this server has {self._settings.name!r}.",
                parameter="model", code="model_not_found",
            )  # fmt: skip
        job = await self._compute(request, self._embedding, asked.input, field="input", pooled=True)
        vectors = self._pooled(job, normalize=None)
        encode = partial(
            answers.openai_embeddings, vectors, model=self._settings.name,
            num_words=sum(job.sizes) - NUM_BOUNDARIES * len(job.sizes),
            as_text=asked.encoding_format == "base64",
        )  # fmt: skip
        return await _answer(job, encode)

    async def _openai_models(self, request: Request) -> Response:
        return json_response({"object": "list", "data": [self._openai_name()]})

    async def _openai_model(self, request: Request) -> Response:
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
        for name, seconds in _seconds(job).items():
            self.metrics.observe(f"te_request_{name}", seconds)
        for size in job.sizes:
            self.metrics.observe("te_request_input_length", size)
        self.metrics.count(texts=num_texts, success=True)
        return job

    def _pooled(self, job: Job, *, normalize: bool | None) -> np.ndarray:
        vectors = np.stack(job.results)
        if self._settings.normalize if normalize is None else normalize:
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            vectors /= np.maximum(lengths, _TINY)[:, np.newaxis]
        return vectors

    def _read(self, schema: type[schemas.Schema], request: Request) -> schemas.Schema:
        asked = schemas.parse(schema, request.scope["state"][BODY])
        dimensions = getattr(asked, "dimensions", None)
        if dimensions not in (None, self._embedder.dim):
            raise RequestError(
                422,
                f"`dimensions` must be {self._embedder.dim} or left out, got {dimensions}: vectors "
                "of this model cannot be shortened.",
                parameter="dimensions",
            )
        return asked

    def _caught(
        self, answer: Callable[["Service", Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def caught(request: Request) -> Response:
            try:
                return await answer(self, request)
            except Exception as error:
                refusal = answers.as_request_error(error)
                self.metrics.fail(refusal.tei_type)
                return answers.error_response(request.url.path, refusal)

        return caught

    async def _no_route(self, request: Request, error: HTTPException) -> Response:
        path = request.url.path
        messages = {
            404: f"There is no route {path[:60]!r}.",
            405: f"{path[:60]} does not take {request.method}.",
        }
        message = messages.get(error.status_code, error.detail)
        response = answers.error_response(path, RequestError(error.status_code, message))
        response.headers.update(error.headers or {})  # of 405, the methods that are allowed
        return response

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        demo = files("elmokit").joinpath("data/demo/en.txt").read_text(encoding="utf-8")
        max_words = self._settings.max_words
        lines = [line.split()[:max_words] for line in demo.splitlines()[:80] if line.strip()]
        sample = [Text(line, "the demo text") for line in lines]
        await asyncio.to_thread(self.batcher.measure, self._embedding, sample)
        async with self.batcher.running():
            yield


_ROUTES = (
    ("POST", "/embed", Service._embed, "a vector per text", "텍스트마다 벡터 하나"),
    ("POST", "/embed_all", Service._embed_all, "a vector per word", "단어마다 벡터 하나"),
    ("POST", "/tokenize", Service._tokenize, "the words of a text", "텍스트를 나눈 단어"),
    ("POST", "/v1/embeddings", Service._openai_embeddings, "the API of OpenAI", "OpenAI의 API"),
    ("GET", "/info", Service._info, "the model and the limits", "모델과 제한"),
    ("GET", "/health", Service._health, "whether the server is up", "서버의 상태"),
    ("GET", "/metrics", Service._metrics, "counts and durations", "요청 수와 시간"),
)
"""Those that the page of the server shows, in English and Korean."""
_FURTHER_ROUTES = (
    ("GET", "/", Service._home),
    ("POST", "/", Service._embed),
    ("POST", "/predict/{run}", Service._predict),
    ("POST", "/embeddings", Service._openai_embeddings),
    ("GET", "/v1/models", Service._openai_models),
    ("GET", "/v1/models/{model:path}", Service._openai_model),
)


async def _answer(job: Job, encode: Callable[[], bytes]) -> Response:
    """Encode an answer of any size in a thread, so that others are answered meanwhile."""
    content = await asyncio.to_thread(encode)
    return Response(content, headers=_times(job), media_type=_JSON)


def _seconds(job: Job) -> dict[str, float]:
    return {
        "duration": time.perf_counter() - job.arrived,
        "tokenization_duration": job.tokenization_seconds,
        "queue_duration": job.queue_seconds or 0.0,
        "inference_duration": job.inference_seconds,
    }


def _times(job: Job) -> dict[str, str]:
    """Return the headers that Text Embeddings Inference adds; times in milliseconds."""
    names = ("x-total-time", "x-tokenization-time", "x-queue-time", "x-inference-time")
    seconds = zip(names, _seconds(job).values(), strict=True)
    times = {name: str(round(1000 * value)) for name, value in seconds}
    return times | {"x-compute-tokens": str(sum(job.sizes))}


def _home_page(name: str, *, url: str, runs: Iterable[str]) -> str:
    """Return what a browser shows at the server's address ``url``."""
    shown = [(f"{method} {path}", *texts) for method, path, _, *texts in _ROUTES]
    shown += [(f"POST /predict/{run}", "the answer of a task model", "과제 모델의 답")
              for run in runs]  # fmt: skip
    rows = "".join(
        f"<tr><td><code>{escape(route)}</code></td><td>{english}</td><td lang=ko>{korean}</td></tr>"
        for route, english, korean in shown
    )
    example = f'curl {url}embed --json \'{{"inputs": "I sat by the bank ."}}\''
    return (
        '<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width='
        f'device-width"><title>{escape(name)} – elmokit</title><style>{_STYLE}</style>'
        f"<h1>{escape(name)}</h1><p>An ELMo model, served by elmokit. "
        "<span lang=ko>elmokit이 제공하는 ELMo 모델입니다.</span></p>"
        f"<table>{rows}</table><pre>{escape(example)}</pre>"
        "<p>To look inside the model, run <code>elmokit explore</code>. "
        "<span lang=ko>모델 내부를 살펴보려면 <code>elmokit explore</code>를 실행하십시오.</span>"
        "</p></html>"
    )
