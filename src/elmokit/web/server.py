"""Connections, and the end: uvicorn, and what it leaves open about slow clients."""

import asyncio
import os
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.routing import Router
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from elmokit.web.errors import RequestError
from elmokit.web.gate import BODY_SECONDS, HAS_GONE, Gate
from elmokit.web.startup import ServerSettings

MAX_CONNECTIONS = 900
"""A request on another one gets status 503, and the connection is closed."""
MAX_HEADER_BYTES = 65_536
"""Address and headers of a request; more may arrive with the last of them."""
HEADER_SECONDS = 10.0
"""The time in which headers must have arrived, once they begin."""
READ_SECONDS = 60.0
"""The time in which a client must read a piece of its answer, or it is left."""
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
                Gate(app, settings, host=host, on_error=on_error), http=_Connection,
                loop="asyncio", ws="none", lifespan="on", log_config=None, access_log=False,
                server_header=False, proxy_headers=False, limit_concurrency=MAX_CONNECTIONS,
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
    """Does not wait for slow clients; uvicorn itself limits only the time between requests."""

    def connection_made(self, transport: Any) -> None:
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._num_header_bytes = 0
        super().connection_made(transport)
        self._expect("headers", HEADER_SECONDS)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if "headers" in self._timers:
            self._num_header_bytes += len(data)
            if self._num_header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
                self.send_400_response("Address and headers are too long.")
        elif self.cycle.response_complete and "rest" not in self._timers:
            self._expect("rest", IDLE_SECONDS)  # of a body that was refused

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._came("rest")
        self._num_header_bytes = 0
        self._expect("headers", HEADER_SECONDS)

    def on_headers_complete(self) -> None:
        self._came("headers")
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
