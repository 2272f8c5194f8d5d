"""What stands before every route: who may ask, how large a request may be, how long it may take."""

import asyncio
import hmac
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elmokit.web.api.answers import RequestError, error_response
from elmokit.web.api.limits import BODY_SECONDS, MAX_BODY_BYTES
from elmokit.web.api.settings import ServerSettings
from elmokit.web.startup import is_own_host

OPEN_PATH = "/health"
"""Answered to everyone: it says nothing but that the server lives."""
BODY, HAS_GONE = "elmokit_body", "elmokit_has_gone"
"""Of a request's state: what was posted; whether its client has left."""
_MAX_DISCARDED_BYTES = 64 * 2**20
"""Of a body that is too large, so that its client reads the answer before the connection ends."""


class Gate:
    """ASGI middleware that refuses requests, and hands on others with `BODY` in their state.

    Args:
        app: Answers requests.
        settings: Key, hosts and limits.
        host: Address that the server listens on.
        check_alive: Raises `RequestError` if nothing is computed any more; called before a body is
            read.
        on_error: Called with the error of every request that is refused here.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        *,
        host: str,
        check_alive: Callable[[], None],
        on_error: Callable[[RequestError], None],
    ) -> None:
        self._app, self._check_alive, self._on_error = app, check_alive, on_error
        self._max_requests, self._num_open = settings.max_requests, 0
        key = settings.api_key
        self._key = None if key is None else key.encode("ascii")
        names = {name.lower() for name in settings.allowed_hosts}

        @lru_cache(maxsize=64)
        def is_allowed(given: str) -> bool:
            allowed = not names.isdisjoint((given.lower(), given.lower().rpartition(":")[0]))
            return allowed or is_own_host(given, host=host, port=None)

        self._is_allowed = is_allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        close = True  # what is left of the body is not read
        try:
            if scope["path"] != OPEN_PATH or scope["method"] == "POST":
                self._check_sender(headers)
            if scope["method"] != "POST":
                await self._app(scope, receive, send)
                return
            with self._place():
                scope["state"][BODY] = await _read_body(headers, receive)
                close = False
                await self._app(scope, receive, _draining(send))
        except RequestError as error:
            self._on_error(error)
            close = close and error.status in (408, 413)
            await error_response(scope["path"], error, close=close)(scope, receive, send)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Count a request from before its body is read until its answer has left."""
        self._check_alive()
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

    def _check_sender(self, headers: dict[bytes, bytes]) -> None:
        if self._key is not None:
            scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
            is_right = hmac.compare_digest(given.strip(), self._key)
            if scheme.lower() != b"bearer" or not is_right:
                raise RequestError(
                    401, "The header `Authorization: Bearer KEY` is missing, or its key is wrong.",
                    code="invalid_api_key",
                )  # fmt: skip
            return  # other sites do not know the key
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if not self._is_allowed(host):
            raise RequestError(
                403,
                f"The Host header {host[:60]!r} is not a name of this server. The option "
                "--allow-host of `elmokit serve` allows it.",
            )
        if origin and origin.partition("://")[2] != host:
            raise RequestError(403, f"Web pages of {origin[:60]!r} may not use this server.")


def _draining(send: Send) -> Send:
    """Return ``send`` that ends once the client has read all but some kilobytes of an answer.

    uvicorn takes a message of any size at once, and waits before the next one.
    """

    async def wait(message: Message) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body"):
            await send({**message, "more_body": True})
            message = {"type": "http.response.body", "body": b""}
        await send(message)

    return wait


async def _read_body(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    length = headers.get(b"content-length", b"")
    too_large = RequestError(413, f"A request has at most {MAX_BODY_BYTES:,} bytes.")
    if headers.get(b"expect") and length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise too_large  # nothing was sent yet
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestError(400, "The client left before its request was complete.")
                size += len(message.get("body", b""))
                if size <= MAX_BODY_BYTES:
                    body += message.get("body", b"")
                if not message.get("more_body") or size > _MAX_DISCARDED_BYTES:
                    break
    except TimeoutError:
        raise RequestError(
            408, f"The request was not complete after {BODY_SECONDS:g} seconds."
        ) from None
    if size > MAX_BODY_BYTES:
        raise too_large
    if kind != b"application/json":
        raise RequestError(415, "A request needs the header `Content-Type: application/json`.")
    return bytes(body)
