"""Connections, and the end."""

import asyncio
import os
from http import HTTPStatus
from types import FrameType
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from elmokit.web.api.answers import RequestError, error_response
from elmokit.web.api.gate import BODY_SECONDS, Gate
from elmokit.web.api.routes import HAS_GONE, Service
from elmokit.web.api.settings import ServerSettings

MAX_HEADER_BYTES = 65_536
HEADER_SECONDS = 10.0
"""In which the headers of a request must have arrived, once they begin."""
READ_SECONDS = 60.0
"""In which a client must read a piece of its answer, or it is left."""
REFUSED_SECONDS = 1.0
"""In which a client that sends no HTTP request can read the answer."""
IDLE_SECONDS = 30
"""That a connection is kept between requests."""


class Server(uvicorn.Server):
    """Answers until it is told to stop, then finishes what it has accepted.

    Args:
        service: What it answers.
        settings: Its options.
        host: Address that it listens on.
    """

    def __init__(self, service: Service, settings: ServerSettings, *, host: str) -> None:
        gate = Gate(
            service, settings, host=host,
            num_connections=lambda: len(self.server_state.connections),
        )  # fmt: skip
        super().__init__(
            uvicorn.Config(
                gate, http=_Connection, loop="asyncio", ws="none", lifespan="on", log_config=None,
                access_log=False, server_header=False, proxy_headers=False,
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


class _Connection(HttpToolsProtocol):
    """A connection that does not wait for slow clients for ever, and refuses them in JSON.

    uvicorn itself limits only the time between requests.
    """

    url = b""  # until a request begins
    _num_header_bytes = 0
    _is_refused = False

    def connection_made(self, transport: Any) -> None:
        self._timers: dict[str, asyncio.TimerHandle] = {}
        super().connection_made(transport)
        self._expect("headers", HEADER_SECONDS)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        super().data_received(data)
        if "headers" in self._timers:
            self._num_header_bytes += len(data)
            if self._num_header_bytes > MAX_HEADER_BYTES:
                self._refuse_headers()
        elif self.cycle.response_complete and "rest" not in self._timers:
            self._expect("rest", IDLE_SECONDS)  # of a body that was refused

    def send_400_response(self, msg: str) -> None:
        self._refuse(RequestError(400, "This is no HTTP request.", close=True))

    def _refuse_headers(self) -> None:
        message = f"Address and headers of a request have at most {MAX_HEADER_BYTES:,} bytes."
        self._refuse(RequestError(431, message, close=True))

    def _refuse(self, error: RequestError) -> None:
        """Answer before there is a request, and close the connection."""
        if self._is_refused:
            return
        response = error_response(self.url.decode("latin-1"), error)
        status = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}".encode()
        headers = [b"%s: %s" % header for header in response.raw_headers]
        self.transport.write(b"\r\n".join([status, *headers, b"", bytes(response.body)]))
        if self.cycle is not None:  # of an earlier request, whose answer is too late now
            self.cycle.disconnected = True
        # not closed at once: what is still arriving would keep the client from reading the answer
        self._is_refused = True
        self.transport.write_eof()
        self._expect("headers", REFUSED_SECONDS)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._came("rest")
        self._num_header_bytes = 0
        self._expect("headers", HEADER_SECONDS)

    def on_headers_complete(self) -> None:
        self._came("headers")
        num_bytes = sum(len(name) + len(value) for name, value in self.headers)
        if num_bytes + len(self.url) > MAX_HEADER_BYTES:
            self._refuse_headers()
            raise ValueError  # ends the parser
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Read on after a long body, where uvicorn paused: else the client's leaving is missed."""
        super().on_message_complete()
        if not self.pipeline:
            self.flow.resume_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect("reading", READ_SECONDS)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._came("reading")

    def connection_lost(self, exc: Exception | None) -> None:
        for event in list(self._timers):
            self._came(event)
        if self.cycle is not None:
            cast(dict[str, Any], self.cycle.scope)["state"][HAS_GONE] = True
        super().connection_lost(exc)

    def _expect(self, event: str, seconds: float) -> None:
        """Leave the client unless the event comes in time."""
        self._came(event)
        transport = cast(asyncio.Transport, self.transport)
        self._timers[event] = self.loop.call_later(seconds, transport.abort)

    def _came(self, event: str) -> None:
        if event in self._timers:
            self._timers.pop(event).cancel()
