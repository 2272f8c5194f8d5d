"""The calls that the page makes to a server, by name, and their routes."""

import json
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from elmokit.embed.embedder import Embedder
from elmokit.errors import ElmokitError, FormatError, MissingExtraError
from elmokit.evaluation.surprisal import surprisal_of_words
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.evaluation.word_prediction import predict_of_words
from elmokit.files.json_files import jsonable
from elmokit.inspection.trace import tokenize, trace
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.training.curves import read_training_run
from elmokit.web.page.models import (
    MAX_BYTES,
    MAX_NAMED,
    MAX_TOP,
    MAX_WORDS,
    ExploredModel,
)
from elmokit.web.server import BODY, RequestError
from elmokit.weights.stored_bilm import StoredBiLM

if TYPE_CHECKING:
    from elmokit.tasks.runs.task_run import TaskRun


METHODS = (
    "open", "tokenize", "trace", "surprisal", "layers", "predict_word", "run", "predict",
)  # fmt: skip

Factor = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
"""A weight of a mixture: larger ones would leave the range of its numbers."""


class Call(BaseModel):
    """What a call may hold; each method reads its own part of it."""

    model_config = ConfigDict(strict=True, frozen=True)
    model: str = ""
    name: str = ""
    task: str = ""
    text: str = ""
    words: list[str] = Field(default=[], max_length=MAX_WORDS, fail_fast=True)
    index: int = 0
    insert: bool = False
    top: int = Field(default=0, ge=0, le=MAX_TOP)
    state: Literal["reset", "warm"] | None = None
    weights: list[Factor] | None = None
    gamma: Factor = 1.0


def refusal(code: str, message: str) -> RequestError:
    """Return an error by a code of ``compute/errors.js``.

    The status is 200: a browser logs other answers as errors of the page.
    """
    return RequestError(200, message, code=code)


class Calls:
    """Answers calls about models, runs and tasks by their names.

    One computation at a time, and beside it one of a task model: ``tasks`` are functions that
    return them, and may load them first.
    """

    def __init__(
        self, models: Sequence[ExploredModel], *, runs: Mapping[str, Path] | None = None,
        tasks: "Mapping[str, Callable[[], TaskRun]] | None" = None,
    ) -> None:  # fmt: skip
        self._models = {explored.name: explored.model for explored in models}
        self._runs, self._tasks = dict(runs or {}), dict(tasks or {})
        self._embedders: dict[str, Embedder] = {}
        self._scorers: dict[tuple[str, str], TextScorer] = {}
        self._lock, self._task_lock = threading.Lock(), threading.Lock()

    def answer(self, method: str, body: bytes) -> bytes:
        """Return JSON, or layers as the page reads them, for a call in JSON."""
        if method not in METHODS:
            raise refusal("not-available", f"This server has no call {method[:40]!r}.")
        call = _read_call(body)
        try:
            with self._task_lock if method == "predict" else self._lock:
                answer = getattr(self, f"_{method}")(call)
        except MissingExtraError as error:
            raise refusal("missing-extra", str(error)) from error
        except ElmokitError as error:
            raise refusal("bad-input", str(error)) from error
        if isinstance(answer, bytes):
            return answer
        return json.dumps(jsonable(answer), allow_nan=False).encode()

    def _model(self, call: Call) -> StoredBiLM:
        return _named(self._models, call.model, kind="model")

    def _open(self, call: Call) -> Any:
        self._model(call)
        return {}

    def _tokenize(self, call: Call) -> Any:
        model = self._model(call)
        try:
            return tokenize(model, call.text)
        except MissingExtraError:  # as the catalog says of such a model
            return tokenize(model, call.text, tokenizer=build_tokenizer("whitespace"))

    def _trace(self, call: Call) -> Any:
        model = self._model(call)
        if model.config.lexicon is not None:
            raise refusal("no-trace", "The model reads characters and words by lists.")
        traced = trace(model, call.words, word=call.index, weights=call.weights, gamma=call.gamma)
        return traced.as_dict()

    def _surprisal(self, call: Call) -> Any:
        if len(call.words) * call.top > MAX_NAMED:
            raise refusal(
                "too-long",
                f"At most {MAX_NAMED:,} likeliest words are named at once, got {len(call.words):,} "
                f"words with `top` {call.top:,}.",
            )
        return list(surprisal_of_words(self._scorer(call).naming(call.top), [call.words]))

    def _predict_word(self, call: Call) -> Any:
        return predict_of_words(
            self._scorer(call), call.words, index=call.index, insert=call.insert, top=call.top
        )

    def _layers(self, call: Call) -> bytes:
        (layers,) = self._embedder(call).embed([call.words], state=call.state or "reset")
        text = json.dumps({"words": call.words, "shape": layers.shape}).encode()
        filled = text + b" " * (-len(text) % 4)
        return struct.pack("<I", len(text)) + filled + layers.astype("<f4").tobytes()

    def _embedder(self, call: Call) -> Embedder:
        model = self._model(call)
        if call.model not in self._embedders:
            self._embedders[call.model] = Embedder(model, device="cpu")
        return self._embedders[call.model]

    def _scorer(self, call: Call) -> TextScorer:
        model = self._model(call)
        if model.num_target_words is None:
            raise refusal("no-softmax", "This model has no softmax over words and predicts none.")
        if model.word_vocab is None:
            raise refusal("no-vocabulary", "This model has a softmax, but no words for it.")
        key = call.model, call.state or "warm"
        if key not in self._scorers:
            self._scorers[key] = TextScorer(model, state=key[1], precision="fp32", unknown="unk")
        return self._scorers[key]

    def _run(self, call: Call) -> Any:
        directory = _named(self._runs, call.name, kind="run")
        try:
            run = read_training_run(directory)
        except (FormatError, FileNotFoundError) as error:
            raise refusal("damaged-run", str(error)) from error
        return {"name": call.name, "title": call.name, **vars(run)}

    def _predict(self, call: Call) -> Any:
        return list(_named(self._tasks, call.task, kind="task")().predict_json([call.text]))


def _read_call(body: bytes) -> Call:
    try:
        call = Call.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        code = "too-long" if first["type"] == "too_long" else "bad-input"
        field = "".join(f"`{name}`: " for name in first["loc"][:1])
        raise refusal(code, f"{field}{first['msg']}") from None
    num_bytes = len((" ".join(call.words) + call.text).encode())
    if num_bytes > MAX_BYTES:
        raise refusal("too-long", f"A text has at most {MAX_BYTES:,} bytes, got {num_bytes:,}.")
    return call


def _named(known: Mapping[str, Any], name: str, *, kind: str) -> Any:
    if name not in known:
        listed = ", ".join(known) or "none"
        raise refusal(f"unknown-{kind}", f"There is no {kind} {name!r:.60}; available: {listed}.")
    return known[name]


_CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".json": "application/json",
    ".txt": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8",
}  # fmt: skip
_BYTES = "application/octet-stream"
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "
        "worker-src 'self'; style-src 'self'; "
        "connect-src 'self'; img-src 'self' data:; font-src 'self'; manifest-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",  # a page and a model of different versions must never mix
}


def page_router(files: Mapping[str, Callable[[], bytes]], calls: Calls) -> Router:
    """Return an ASGI application of files, by how to read each, and calls."""

    async def file(request: Request) -> Response:
        path = request.path_params["path"] or "index.html"
        if path not in files:
            raise RequestError(404, f"There is nothing at /{path[:100]}.")
        kind = _CONTENT_TYPES.get(Path(path).suffix, _BYTES)
        # in a thread: what is made of a model takes seconds
        return Response(await run_in_threadpool(files[path]), headers=_HEADERS, media_type=kind)

    async def call(request: Request) -> Response:
        method, body = request.path_params["method"], request.scope["state"][BODY]
        content = await run_in_threadpool(calls.answer, method, body)
        kind = _BYTES if method == "layers" else "application/json"
        return Response(content, headers=_HEADERS, media_type=kind)

    return Router([
        Route("/api/{method}", call, methods=["POST"]),
        Route("/{path:path}", file, methods=["GET"]),
    ])  # fmt: skip
