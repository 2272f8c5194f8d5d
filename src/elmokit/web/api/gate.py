"""What stands before every route: who may ask, how large a request may be, how long it may take."""

import asyncio
import hmac
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from elmokit.web.api.answers import RequestError, error_response
from elmokit.web.api.routes import BODY, Service
from elmokit.web.api.settings import ServerSettings
from elmokit.web.startup import is_own_host

OPEN_PATH = "/health"
"""Answered to everyone: it says nothing but that the server lives."""
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
    """ASGI middleware that refuses requests, and hands on others with `BODY` in their state."""

    def __init__(
        self,
        service: Service,
        settings: ServerSettings,
        *,
        host: str,
        num_connections: Callable[[], int],
    ) -> None:
        self._service, self._app, self._settings = service, service.app(), settings
        self._host, self._num_connections = host, num_connections
        self._names = {name.lower() for name in settings.allowed_hosts}
        self._num_open = 0

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
            self._service.metrics.fail(error.tei_type)
            await error_response(scope["path"], error)(scope, receive, send)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Count a request from before its body is read until its answer has left."""
        self._service.batcher.check_running()
        most = self._settings.max_requests
        if self._num_open >= most:
            raise RequestError(
                429, f"{most} requests are being answered already: try again.",
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
        if self._settings.api_key is not None:
            scheme, _, key = headers.get("authorization", "").partition(" ")
            is_right = hmac.compare_digest(
                key.strip().encode("latin-1"), self._settings.api_key.encode()
            )
            if scheme.lower() != "bearer" or not is_right:
                raise RequestError(
                    401, "The header `Authorization: Bearer KEY` is missing, or its key is wrong.",
                    code="invalid_api_key",
                )  # fmt: skip
            return  # other sites do not know the key
        host, origin = headers.get("host", ""), headers.get("origin", "")
        is_named = not self._names.isdisjoint((host.lower(), host.lower().rpartition(":")[0]))
        if not is_named and not is_own_host(host, host=self._host, port=None):
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
