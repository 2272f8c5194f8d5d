"""What stands before every route: who may ask, how large a request may be, how long it may take."""

import asyncio
import hmac
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elmokit.web.api.answers import RequestError, error_response
from elmokit.web.api.settings import ServerSettings
from elmokit.web.startup import is_own_host

OPEN_PATH = "/health"
"""Answered to everyone: it says nothing but that the server lives."""
BODY, HAS_GONE = "elmokit_body", "elmokit_has_gone"
"""Of a request's state: what was posted; whether its client has left."""
MAX_CONNECTIONS = 900
"""A request on another one gets status 503, and the connection is closed."""
MAX_BODY_BYTES = 4_000_000
BODY_SECONDS = 20.0
"""In which a request must have arrived."""
PIECE_BYTES = 65_536
"""Of an answer; the next piece is sent when most of this one has been read."""

_MAX_DISCARDED_BYTES = 64 * 2**20
"""Of a body that is too large, so that its client reads the answer before the connection ends."""


class Gate:
    """ASGI middleware that refuses requests, and hands on others with `BODY` in their state.

    Args:
        app: Answers requests.
        settings: Key, hosts and limits.
        host: Address that the server listens on.
        check_running: Raises `RequestError` if nothing is computed any more; called before a body
            is read.
        num_connections: Returns how many there are.
        on_error: Called with the error of every request that is refused here.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        *,
        host: str,
        check_running: Callable[[], None],
        num_connections: Callable[[], int],
        on_error: Callable[[RequestError], None],
    ) -> None:
        self._app, self._check_running, self._on_error = app, check_running, on_error
        self._num_connections = num_connections
        self._max_requests, self._num_open = settings.max_requests, 0
        self._key = settings.api_key
        names = {name.lower() for name in settings.allowed_hosts}

        @lru_cache(maxsize=64)
        def is_allowed(header: str) -> bool:
            is_named = not names.isdisjoint((header.lower(), header.lower().rpartition(":")[0]))
            return is_named or is_own_host(header, host=host, port=None)

        self._is_allowed = is_allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check_connections()
            if scope["path"] != OPEN_PATH or scope["method"] == "POST":
                self._check_sender(headers)
            if scope["method"] != "POST":
                await self._app(scope, receive, send)
                return
            with self._place():
                scope["state"][BODY] = await _read_body(headers, receive)
                await self._app(scope, receive, _in_pieces(send))
        except RequestError as error:
            self._on_error(error)
            await error_response(scope["path"], error)(scope, receive, send)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Count a request from before its body is read until its answer has left."""
        self._check_running()
        if self._num_open >= self._max_requests:
            raise RequestError(
                429, f"{self._max_requests} requests are being answered already: try again.",
                code="rate_limit_exceeded", retry_after=1,
            )  # fmt: skip
        self._num_open += 1
        try:
            yield
        finally:
            self._num_open -= 1

    def _check_connections(self) -> None:
        if self._num_connections() > MAX_CONNECTIONS:
            raise RequestError(
                503, "There are too many connections.", code="rate_limit_exceeded", retry_after=1,
                close=True,
            )  # fmt: skip

    def _check_sender(self, headers: Headers) -> None:
        if self._key is not None:
            scheme, _, key = headers.get("authorization", "").partition(" ")
            is_right = hmac.compare_digest(key.strip().encode("latin-1"), self._key.encode())
            if scheme.lower() != "bearer" or not is_right:
                raise RequestError(
                    401, "The header `Authorization: Bearer KEY` is missing, or its key is wrong.",
                    code="invalid_api_key",
                )  # fmt: skip
            return  # other sites do not know the key
        host, origin = headers.get("host", ""), headers.get("origin", "")
        if not self._is_allowed(host):
            raise RequestError(
                403,
                f"The Host header {host[:60]!r} is not a name of this server. The option "
                "--allow-host of `elmokit serve` allows it.",
            )
        if origin and origin.partition("://")[2] != host:
            raise RequestError(403, f"Web pages of {origin[:60]!r} may not use this server.")


def _in_pieces(send: Send) -> Send:
    """Return ``send`` that ends once the client has read all but some kilobytes of an answer.

    uvicorn takes a message of any size at once, and waits before the next one.
    """

    async def send_pieces(message: Message) -> None:
        body = message.get("body", b"")
        for start in range(0, len(body), PIECE_BYTES):
            piece = body[start : start + PIECE_BYTES]
            await send({"type": message["type"], "body": piece, "more_body": True})
        await send({**message, "body": b""} if body else message)

    return send_pieces


async def _read_body(headers: Headers, receive: Receive) -> bytes:
    too_large = RequestError(413, f"A request has at most {MAX_BODY_BYTES:,} bytes.", close=True)
    length = headers.get("content-length", "")
    if "expect" in headers and length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise too_large  # nothing was sent yet
    body, num_bytes, is_whole = bytearray(), 0, False
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while not is_whole and num_bytes <= _MAX_DISCARDED_BYTES:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestError(400, "The client left before its request was complete.")
                num_bytes += len(message.get("body", b""))
                if num_bytes <= MAX_BODY_BYTES:
                    body += message.get("body", b"")
                is_whole = not message.get("more_body")
    except TimeoutError:
        raise RequestError(
            408, f"The request was not complete after {BODY_SECONDS:g} seconds.", close=True
        ) from None
    if num_bytes > MAX_BODY_BYTES:
        raise too_large
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(415, "A request needs the header `Content-Type: application/json`.")
    return bytes(body)
