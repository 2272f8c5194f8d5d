"""The server: who may ask, how large a request may be, errors, and uvicorn with our limits."""

import asyncio
import hmac
import ipaddress
import itertools
import json
import logging
import os
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import Message, Receive, Scope, Send

from elmokit.errors import InputError
from elmokit.web.startup import ServerSettings

log = logging.getLogger(__name__)

_OPENAI_PATHS = ("/v1/", "/embeddings", "/api/")
"""The explorer page reads its errors in the dialect of OpenAI, too."""
_MAX_MESSAGE = 500
"""Characters of an error; values of a request that it echoes can have any length."""
_TEI_TYPES = {422: "tokenizer", 500: "backend", 503: "unhealthy"}
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


@dataclass(eq=False)
class RequestError(Exception):
    """A request that is not answered."""

    status: int
    """The status of HTTP."""
    message: str
    """What was found, where, and what is allowed."""
    _: KW_ONLY
    parameter: str | None = None
    """The field of the request that is at fault."""
    code: str | None = None
    """A word of the OpenAI dialect, or of ``compute/errors.js``, for programs."""
    headers: dict[str, str] = field(default_factory=dict)
    """Of the answer, such as ``Retry-After``, the seconds after which it may succeed."""

    def __str__(self) -> str:
        return self.message

    @property
    def tei_type(self) -> str:
        """The ``error_type`` of Text Embeddings Inference."""
        if self.code == "rate_limit_exceeded":
            return "overloaded"
        return _TEI_TYPES.get(self.status, "validation")


def as_request_error(path: str, error: Exception) -> RequestError:
    """Return what to answer for an exception.

    Of what is no fault of the request the answer does not say what it was, since it may name files
    of this machine, and the log does not quote the message, since it may quote the text.
    """
    if isinstance(error, RequestError):
        return error
    if isinstance(error, InputError):
        return RequestError(422, str(error))
    if isinstance(error, HTTPException):
        if error.status_code == 404:
            return RequestError(404, f"There is no route {path[:60]!r}.")
        message = f"{path[:60]}: {error.detail}."
        return RequestError(error.status_code, message, headers=dict(error.headers or {}))
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("a computation failed with %s:\n%s", type(error).__name__, frames)
    return RequestError(500, "The computation failed. The log of the server has the reason.")


def error_response(path: str, error: RequestError) -> Response:
    """Return an error in the dialect of the route."""
    message = error.message[:_MAX_MESSAGE] + "…" * (len(error.message) > _MAX_MESSAGE)
    content: dict[str, Any] = {"error": message, "error_type": error.tei_type}
    if path.startswith(_OPENAI_PATHS):
        default = "server_error" if error.status >= 500 else "invalid_request_error"
        kind = _OPENAI_TYPES.get(error.status, default)
        details = {"type": kind, "param": error.parameter, "code": error.code}
        content = {"error": {"message": message, **details}}
    return json_response(content, status=error.status, headers=error.headers)


def as_json(content: Any) -> bytes:
    """Return JSON without escapes; NaN is refused."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()


def json_response(
    content: Any, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return JSON values as an answer."""
    return Response(as_json(content), status, headers, media_type="application/json")


BODY = "elmokit_body"
"""In the state of a request: what was posted."""
OPEN_PATH = "/health"
"""Answered to everyone: it says nothing but that the server lives."""
MAX_BODY_BYTES = 4_000_000
BODY_SECONDS = 20.0
"""The time in which a request must have arrived."""
READ_SECONDS = 60.0
"""The time in which a client must read each piece of its answer."""
PIECE_BYTES = 65_536
CLOSE = {"Connection": "close"}
"""Ends a connection on which more may come that is not read."""

_MAX_DISCARDED_BYTES = 64 * 2**20
"""Read of a body that is too large, so that its client reads the answer before the end."""


class Gate:
    """ASGI application that refuses requests or hands them to routes, and answers all errors.

    The routes find the body of a request as `BODY` in its state. They are a router, no Starlette
    application, which would log errors with their messages, and so with texts of clients.
    """

    def __init__(
        self, app: Router, settings: ServerSettings, *, host: str,
        on_error: Callable[[RequestError], None], on_gone: Callable[[Any], None],
    ) -> None:  # fmt: skip
        self._app, self._settings, self._host, self._on_error = app, settings, host, on_error
        self._on_gone = on_gone
        self._names = {name.lower() for name in settings.allowed_hosts}
        self._num_open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope["app"] = self  # tells Starlette's routes to raise what they do not answer
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, send = Headers(scope=scope), _in_pieces(send)
        try:
            if scope["path"] != OPEN_PATH or scope["method"] == "POST":
                self._check_sender(scope["method"], headers)
            if scope["method"] != "POST":
                await self._app(scope, receive, send)
                return
            with self._place():
                scope["state"][BODY] = await _read_body(headers, Request(scope, receive))
                await self._app(scope, receive, send)
        except ClientDisconnect:
            log.info("a client left in the middle of its answer")
            self._on_gone(scope.get("client"))
            await asyncio.sleep(0)  # uvicorn learns of it
        except Exception as error:
            refusal = as_request_error(scope["path"], error)
            self._on_error(refusal)
            await error_response(scope["path"], refusal)(scope, receive, send)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Count a request from before its body is read until its answer has left."""
        most = self._settings.max_requests
        if self._num_open >= most:
            raise RequestError(
                429, f"{most} requests are being answered already: try again.",
                code="rate_limit_exceeded",
                headers={"Retry-After": "1"},
            )  # fmt: skip
        self._num_open += 1
        try:
            yield
        finally:
            self._num_open -= 1

    def _check_sender(self, method: str, headers: Headers) -> None:
        if self._settings.api_key is not None:
            scheme, _, key = headers.get("authorization", "").partition(" ")
            is_right = hmac.compare_digest(
                key.strip().encode("latin-1"), self._settings.api_key.encode()
            )
            if scheme.lower() != "bearer" or not is_right:
                raise RequestError(
                    401, "The header `Authorization: Bearer KEY` is missing, or its key is wrong.",
                    code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"},
                )  # fmt: skip
            return  # other sites do not know the key
        host, origin = headers.get("host", ""), headers.get("origin", "")
        is_named = not self._names.isdisjoint((host.lower(), host.lower().rpartition(":")[0]))
        if not is_named and not is_own_host(host, host=self._host):
            raise RequestError(
                403,
                f"The Host header {host[:60]!r} is not a name of this server. The option "
                "--allow-host of `elmokit serve` allows it.",
            )
        # a link of another site may open a page here; its scripts, images and frames get nothing
        is_click = method == "GET" and headers.get("sec-fetch-dest") == "document"
        is_own = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        if (origin and origin.partition("://")[2] != host) or not (is_own or is_click):
            raise RequestError(403, f"Web pages of {origin[:60]!r} may not use this server.")


def is_own_host(header: str, *, host: str) -> bool:
    """Return whether a Host header names a server that listens on ``host``, with any port.

    Other sites can make a browser send requests here under a name of theirs, but not under ours.
    """
    try:
        parts = urlsplit(f"//{header}")
        name, _ = (parts.hostname or "").lower(), parts.port
        if name in ("localhost", host.lower(), socket.gethostname().lower()):
            return True
        # a name that leads here by DNS could be anyone's; a number could not
        address = ipaddress.ip_address(name)
        return address.is_loopback or not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _in_pieces(send: Send) -> Send:
    """Return ``send`` that ends once the client has read all but some kilobytes of an answer.

    uvicorn takes a message of any size at once, and waits before the next one. A client that does
    not read in time counts as gone.
    """

    async def send_pieces(message: Message) -> None:
        body = message.get("body", b"")
        pieces = (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))
        parts = ({"type": message["type"], "body": piece, "more_body": True} for piece in pieces)
        try:
            for part in itertools.chain(parts, [{**message, "body": b""} if body else message]):
                async with asyncio.timeout(READ_SECONDS):
                    await send(part)
        except TimeoutError:
            raise ClientDisconnect from None

    return send_pieces


async def _read_body(headers: Headers, request: Request) -> bytes:
    too_large = RequestError(413, f"A request has at most {MAX_BODY_BYTES:,} bytes.", headers=CLOSE)
    length = headers.get("content-length", "")
    if "expect" in headers and length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise too_large  # nothing was sent yet
    body, num_bytes = bytearray(), 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                num_bytes += len(piece)
                if num_bytes <= MAX_BODY_BYTES:
                    body += piece
                elif num_bytes > _MAX_DISCARDED_BYTES:
                    break
    except ClientDisconnect:
        message = "The client left before its request was complete."
        raise RequestError(400, message) from None
    except TimeoutError:
        message = f"The request was not complete after {BODY_SECONDS:g} seconds."
        raise RequestError(408, message, headers=CLOSE) from None
    if num_bytes > MAX_BODY_BYTES:
        raise too_large
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(415, "A request needs the header `Content-Type: application/json`.")
    return bytes(body)


MAX_CONNECTIONS = 900
"""A request on another one gets status 503, and the connection is closed."""
MAX_HEADER_BYTES = 65_536
"""Address and headers of a request."""
IDLE_SECONDS = 30
"""How long a connection is kept between requests."""


class Server(uvicorn.Server):
    """Answers on ``host`` until it is told to stop, then finishes what it has accepted."""

    def __init__(
        self, app: Router, settings: ServerSettings, *, host: str,
        on_error: Callable[[RequestError], None] = lambda _: None,
    ) -> None:  # fmt: skip
        super().__init__(
            uvicorn.Config(
                Gate(app, settings, host=host, on_error=on_error, on_gone=self._abort), http="h11",
                loop="asyncio", ws="none", lifespan="on", log_config=None, access_log=False,
                server_header=False, proxy_headers=False, limit_concurrency=MAX_CONNECTIONS,
                timeout_keep_alive=IDLE_SECONDS, h11_max_incomplete_event_size=MAX_HEADER_BYTES,
                timeout_graceful_shutdown=int(2 * settings.timeout_seconds + BODY_SECONDS) + 1,
            )
        )  # fmt: skip

    def _abort(self, client: Any) -> None:
        """End the connection of a client, also what it has not read."""
        for connection in list[Any](self.server_state.connections):
            if connection.client == client:
                connection.transport.abort()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at a signal, which is no error; at a second one end here and now.

        The interpreter would wait for the batch at hand, and log the requests that it breaks off.
        """
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True
