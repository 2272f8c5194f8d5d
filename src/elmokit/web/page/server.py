"""The page over HTTP, for one reader on this machine: static files, model files, calls.

Only requests that name this server as host and come from its own pages are answered, so that other
sites in the same browser cannot use it; a link of another site may open the page. Nothing that is
sent is run or written. The standard library's server is enough for one reader, so the page needs
no extra.
"""

import json
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from elmokit.web.page.calls import CallError, Calls
from elmokit.web.startup import is_own_host, url_of

log = logging.getLogger(__name__)

DEFAULT_PORT = 8765
MAX_BODY_BYTES = 2_000_000
MAX_CONNECTIONS = 64
"""Each has a thread; a browser opens six, and more are closed at once."""
IDLE_SECONDS = 15
"""Without a byte, after which a connection is closed; a browser opens it again when it needs it."""
PIECE_BYTES = 1 << 18
_CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".json": "application/json",
    ".txt": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8",
}  # fmt: skip
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


class PageServer(ThreadingHTTPServer):
    """Serves files, by how to read each, and calls on a socket that listens on ``host``."""

    daemon_threads = True

    def __init__(
        self,
        files: Mapping[str, Callable[[], bytes]],
        calls: Calls,
        listener: socket.socket,
        *,
        host: str,
    ) -> None:
        super().__init__((host, 0), _Connection, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.files, self.calls, self.host = files, calls, host
        self.url, self.port = url_of(host, listener), listener.getsockname()[1]
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread of its own, unless there are too many."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer the requests of a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


class _Connection(BaseHTTPRequestHandler):
    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "elmokit", ""
    command = path = ""  # until a request line was read
    timeout = IDLE_SECONDS
    default_request_version = "HTTP/1.1"  # else an answer to what is no HTTP has no status
    disable_nagle_algorithm = True  # else content waits 40 ms for the client to acknowledge headers

    def handle(self) -> None:
        with suppress(ConnectionError, TimeoutError):  # the reader has gone
            super().handle()

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0]).lstrip("/") or "index.html"
        if self._is_refused(is_page=path == "index.html"):
            return
        if path not in self.server.files:
            self._fail("not-available", f"There is nothing at /{path[:100]}.", HTTPStatus.NOT_FOUND)
            return
        kind = _CONTENT_TYPES.get(Path(path).suffix, "application/octet-stream")
        self._answer(self.server.files[path], kind)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
        if self._is_refused():
            return
        if not self.path.startswith("/api/") or kind != "application/json":
            self._fail("bad-input", "A call goes to /api/ and is JSON.", close=True)
        elif not (length.isdecimal() and len(length) < 10 and int(length) <= MAX_BODY_BYTES):
            message = f"A call has a Content-Length, and at most {MAX_BODY_BYTES:,} bytes."
            self._fail("too-long", message, HTTPStatus(413), close=True)
        else:
            body, method = self.rfile.read(int(length)), self.path.removeprefix("/api/")
            kind = f"application/{'octet-stream' if method == 'layers' else 'json'}"
            self._answer(lambda: self.server.calls.answer(method, body), kind)

    def _is_refused(self, *, is_page: bool = False) -> bool:
        """Refuse requests of other sites; only a reader's click may lead from there to the page."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        is_foreign = origin is not None and origin != f"http://{host}"
        site = self.headers.get("Sec-Fetch-Site", "none")
        goes_here = (self.headers.get("Sec-Fetch-Mode"), self.headers.get("Sec-Fetch-Dest"))
        is_own = site in ("none", "same-origin") or (
            is_page and goes_here == ("navigate", "document")
        )
        url, port = self.server.url, self.server.port
        reason = "Only pages of this server may ask it."
        if not is_own_host(host, host=self.server.host, port=port):
            reason = (
                f"This server is {url} and was asked as {host!r:.80}. Open it by its own address; "
                f"if a port is forwarded to it, forward the same, {port}."
            )
        elif is_own and not is_foreign:
            return False
        self._fail("not-available", reason, HTTPStatus.FORBIDDEN, close=True)
        return True

    def _answer(self, make: Callable[[], bytes], kind: str) -> None:
        """Send what is made, or why it cannot be made."""
        try:
            content = make()
        except CallError as error:  # 200: a browser logs other answers as errors of the page
            self._fail(error.code, str(error), HTTPStatus.OK)
        except Exception as error:
            log.exception("a request failed")
            self._fail("bug", f"{type(error).__name__}: {error}", HTTPStatus(500), close=True)
        else:
            self._send(HTTPStatus.OK, content, kind)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse in JSON what is no request; ``message`` may quote any length of it."""
        status = HTTPStatus(code)
        self._fail("bad-input", f"{status.phrase}: {status.description}.", status, close=True)

    def _fail(
        self,
        code: str,
        message: str,
        status: HTTPStatus = HTTPStatus.BAD_REQUEST,
        *,
        close: bool = False,
    ) -> None:
        self.close_connection = self.close_connection or close
        content = json.dumps({"error": {"code": code, "message": message}}).encode()
        self._send(status, content, "application/json")

    def _send(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        headers = {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            for start in range(0, len(content), PIECE_BYTES):  # each must be taken in `timeout`
                self.wfile.write(content[start : start + PIECE_BYTES])

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: an address may hold what was typed."""
