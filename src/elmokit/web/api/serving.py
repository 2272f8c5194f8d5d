"""Listening, connections, and the end."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from http import HTTPStatus
from types import FrameType
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from elmokit.web.api.answers import RequestError, error_response
from elmokit.web.api.gate import HAS_GONE, Gate
from elmokit.web.api.limits import BODY_SECONDS
from elmokit.web.api.routes import Service
from elmokit.web.api.settings import ServerSettings

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 900
"""A request on another one gets status 503, and the connection is closed."""
MAX_HEADER_BYTES = 65_536
HEADER_SECONDS = 10.0
"""In which the headers of a request must have arrived, once they begin."""
WRITE_SECONDS = 60.0
"""In which a client must read `WRITE_BYTES` of its answer, or it is left."""
WRITE_BYTES = 65_536
REFUSED_SECONDS = 1.0
"""In which a client that sends no HTTP request can read the answer."""
IDLE_SECONDS = 30
"""That a connection is kept between requests."""
_BACKLOG = 1024


class Server(uvicorn.Server):
    """Answers until it is told to stop, then finishes what it has accepted.

    Args:
        service: What it answers.
        settings: Its options.
        host: Address that it listens on.
    """

    def __init__(self, service: Service, settings: ServerSettings, *, host: str) -> None:
        gate = Gate(
            service.app(), settings, host=host,
            check_alive=service.batcher.check_alive, on_error=service.count_error,
        )  # fmt: skip
        self._batcher = service.batcher
        super().__init__(
            uvicorn.Config(
                gate, http=_Connection, loop="asyncio", ws="none", lifespan="on", log_config=None,
                access_log=False, server_header=False, proxy_headers=False, backlog=_BACKLOG,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=int(2 * settings.timeout_seconds + BODY_SECONDS) + 1,
            )
        )  # fmt: skip

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at a signal, which is no error; at a second one end here and now.

        The interpreter would wait for the batch at hand, and log the requests that it breaks off.
        """
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what was accepted. A thread must not compute while the interpreter ends."""
        await super().shutdown(sockets)
        self._batcher.stop()


class _Connection(HttpToolsProtocol):
    """A connection that does not wait for slow clients for ever."""

    _timer: asyncio.TimerHandle | None = None
    url = b""  # until a request begins
    _is_surplus = _is_refused = False
    _in_headers = False
    _num_header_bytes = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # asyncio does so only for sockets made with the protocol's number: without it, the body of
        # an answer waits until the client acknowledges the headers, 40 ms
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._start_timer(HEADER_SECONDS)
        self._is_surplus = len(self.connections) > MAX_CONNECTIONS

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self._is_surplus:
            message = "There are too many connections."
            self._refuse(RequestError(503, message, code="rate_limit_exceeded", retry_after=1))
            return
        super().data_received(data)
        if self._in_headers and not self._is_refused:
            self._num_header_bytes += len(data)
            if self._num_header_bytes > MAX_HEADER_BYTES:
                self.send_400_response("")
            elif self._timer is None:
                self._start_timer(HEADER_SECONDS)
        elif self._timer is None and self.cycle is not None and self.cycle.response_complete:
            self._start_timer(IDLE_SECONDS)  # the rest of a body that was refused

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, or has too long headers."""
        if self._num_header_bytes > MAX_HEADER_BYTES:
            message = f"Address and headers of a request have at most {MAX_HEADER_BYTES:,} bytes."
            self._refuse(RequestError(431, message))
        else:
            self._refuse(RequestError(400, "This is no HTTP request."))

    def _refuse(self, error: RequestError) -> None:
        """Answer before there is a request, and close the connection."""
        response = error_response(self.url.decode("latin-1"), error, close=True)
        status = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}".encode()
        headers = [b"%s: %s" % header for header in response.raw_headers]
        self.transport.write(b"\r\n".join([status, *headers, b"", bytes(response.body)]))
        if self.cycle is not None:  # of an earlier request, whose answer is too late now
            self.cycle.disconnected = True
        # not closed at once: what is still arriving would keep the client from reading the answer
        self._is_refused = True
        self.transport.write_eof()
        self._start_timer(REFUSED_SECONDS)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_headers, self._num_header_bytes = True, 0

    def on_headers_complete(self) -> None:
        self._in_headers = False
        # the headers may have arrived in one piece with what comes after them
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > MAX_HEADER_BYTES:
            self._num_header_bytes = size
            raise ValueError("too long")  # to the parser, which then refuses the request
        if not self.flow.write_paused:  # else the timer is that of an unread answer
            self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Read on after a long body, where uvicorn paused: else the client's leaving is missed."""
        super().on_message_complete()
        if not self.pipeline:
            self.flow.resume_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer()
        if self._in_headers:  # of the next request
            self._start_timer(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self.cycle is not None:
            cast(dict[str, Any], self.cycle.scope)["state"][HAS_GONE] = True
        super().connection_lost(exc)

    def _watch_reading(self) -> None:
        """Leave the client if it reads too little of what is waiting to be sent."""
        transport = cast(asyncio.Transport, self.transport)
        waiting = transport.get_write_buffer_size()

        def look() -> None:
            if transport.get_write_buffer_size() > waiting - WRITE_BYTES:
                transport.abort()
            else:
                self._watch_reading()

        self._start_timer(WRITE_SECONDS, look)

    def _start_timer(self, seconds: float, then: Callable[[], None] | None = None) -> None:
        self._stop_timer()
        transport = cast(asyncio.Transport, self.transport)
        self._timer = self.loop.call_later(seconds, then or transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
