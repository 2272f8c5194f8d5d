"""The page over HTTP, for one reader on this machine: static files, model files, calls.

Only requests that name this server as host and come from its own pages are answered, so that other
sites in the same browser cannot use it; a link of another site may open the page. Nothing that is
sent is run or written.
"""

import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from elmokit.web.addresses import cannot_listen, is_own_host, url_of
from elmokit.web.page.calls import CallError, Calls, as_json
from elmokit.web.page.catalog import CATALOG_NAME, MADE_FILES, ExploredModel
from elmokit.web.page.prepared import STATIC
from elmokit.web.page.text_rules import RULES_NAME, text_rules

log = logging.getLogger(__name__)

DEFAULT_PORT = 8765
MAX_BODY_BYTES = 2_000_000
MAX_CONNECTIONS = 64
"""Each has a thread; a browser opens six, and more are closed at once."""
IDLE_SECONDS = 15
"""Without a byte, after which a connection is closed; a browser opens it again when it needs it."""
PIECE_BYTES = 1 << 18
_MAX_DIGITS = 20
"""Of a Content-Length."""
_CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".json": "application/json", ".svg": "image/svg+xml",
    ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
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
_STATUS = {
    "not-available": HTTPStatus.NOT_FOUND, "too-long": HTTPStatus(413),
    "bug": HTTPStatus.INTERNAL_SERVER_ERROR,
}  # fmt: skip


class ExplorerServer(ThreadingHTTPServer):
    """Listens as soon as it is made; ``serve_forever`` answers.

    Args:
        catalog: Contents of ``explorer.json``.
        models: Those of the catalog.
        calls: Answers the calls.
        host: Address to listen on.
        port: 0 takes a free one.

    Raises:
        InputError: if the port is in use, or the address is none of this machine.
    """

    daemon_threads = True

    def __init__(
        self,
        catalog: dict[str, Any],
        models: Sequence[ExploredModel],
        calls: Calls,
        *,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
    ) -> None:
        self.calls = calls
        self.made = {CATALOG_NAME: as_json(catalog), RULES_NAME: as_json(text_rules())}
        self.model_files: dict[str, Path | ExploredModel] = {}
        for one in models:
            folder = f"models/{one.name}"
            self.model_files |= {f"{folder}/{path.name}": path for path in one.files()}
            self.model_files |= {f"{folder}/{name}": one for name in MADE_FILES}
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise cannot_listen(host, port, error) from error
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self.host = host
        self.url = url_of(host, self.server_port)

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

    def is_own_host(self, given: str) -> bool:
        """Return whether a Host header names this server."""
        return is_own_host(given, host=self.host, port=self.server_port)


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "elmokit", ""
    command = path = ""  # until a request line was read
    timeout = IDLE_SECONDS
    default_request_version = "HTTP/1.1"  # else an answer to what is no HTTP has no status
    disable_nagle_algorithm = True  # else content waits 40 ms for the client to acknowledge headers

    def handle(self) -> None:
        """Answer requests until the reader has gone."""
        with suppress(ConnectionError):
            super().handle()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse in JSON what is no request; ``message`` may quote any length of it."""
        status = HTTPStatus(code)
        self._fail("bad-input", f"{status.phrase}: {status.description}.", status, close=True)

    def do_GET(self) -> None:
        """Send a file."""
        self._guarded(self._send_file)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Answer a call."""
        self._guarded(self._answer_call)

    def _guarded(self, answer: Callable[[], None]) -> None:
        try:
            answer()
        except (ConnectionError, TimeoutError):
            self.close_connection = True  # the reader has gone
        except Exception as error:
            log.exception("a request failed")
            self._fail("bug", f"{type(error).__name__}: {error}", close=True)

    def _send_file(self) -> None:
        path = unquote(self._url_path()).lstrip("/") or "index.html"
        if not self._may_ask(is_page=path == "index.html"):
            return
        read = self._file(path)
        if read is None:
            self._fail("not-available", f"There is nothing at /{path[:100]}.")
            return
        kind = _CONTENT_TYPES.get(Path(path).suffix, "application/octet-stream")
        self._send(HTTPStatus.OK, None if self.command == "HEAD" else read(), kind)

    def _answer_call(self) -> None:
        if not self._may_ask():
            return
        length = self.headers.get("Content-Length", "")
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
        if not length.isdecimal() or kind != "application/json":
            self._fail("bad-input", "A call is JSON with a Content-Length.", close=True)
            return
        if len(length) > _MAX_DIGITS or int(length) > MAX_BODY_BYTES:
            self._fail("too-long", f"A call has at most {MAX_BODY_BYTES:,} bytes.", close=True)
            return
        body = self.rfile.read(int(length))
        path = self._url_path()
        if not path.startswith("/api/"):
            self._fail("not-available", "Calls go to /api/.")
            return
        try:
            given = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._fail("bad-input", f"Not JSON: {error}.")
            return
        if not isinstance(given, dict):
            self._fail("bad-input", f"A call is a JSON object, got {given!r:.60}.")
            return
        try:
            answer = self.server.calls.answer(path.removeprefix("/api/"), given)
        except CallError as error:  # 200: a browser logs other answers as errors of the page
            self._fail(error.code, str(error), HTTPStatus.OK)
            return
        if isinstance(answer, bytes):
            self._send(HTTPStatus.OK, answer, "application/octet-stream")
        else:
            self._send(HTTPStatus.OK, as_json(answer), "application/json")

    def _url_path(self) -> str:
        try:
            return urlsplit(self.path).path  # a request may name the whole address
        except ValueError:  # of a damaged address
            return self.path

    def _file(self, path: str) -> Callable[[], bytes] | None:
        """Return what reads or makes a file."""
        if path in self.server.made:
            return lambda: self.server.made[path]
        found = self.server.model_files.get(path)
        if isinstance(found, Path):
            return found.read_bytes
        if found is not None:
            return lambda: found.made_file(Path(path).name)
        parts = PurePosixPath(path).parts
        if set("\0\\:") & set(path) or ".." in parts or path.startswith("/"):
            return None
        file = STATIC.joinpath(*parts)  # not resolved: the package may consist of links
        return file.read_bytes if os.path.isfile(file) else None  # any length of name

    def _may_ask(self, *, is_page: bool = False) -> bool:
        """Refuse requests of other sites; only a reader's click may lead from there to the page."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        is_foreign = origin is not None and origin != f"http://{host}"
        site = self.headers.get("Sec-Fetch-Site", "none")
        goes_here = (self.headers.get("Sec-Fetch-Mode"), self.headers.get("Sec-Fetch-Dest"))
        is_own = site in ("none", "same-origin") or (
            is_page and goes_here == ("navigate", "document")
        )
        if self.server.is_own_host(host) and not is_foreign and is_own:
            return True
        self.close_connection = True
        reason = "Only pages of this server may ask it."
        if not self.server.is_own_host(host):
            url, port = self.server.url, self.server.server_port
            reason = (
                f"This server is {url} and was asked as {host!r:.80}. Open it by its own address; "
                f"if a port is forwarded to it, forward the same, {port}."
            )
        self._fail("not-available", reason, HTTPStatus.FORBIDDEN)
        return False

    def _fail(
        self, code: str, message: str, status: HTTPStatus | None = None, *, close: bool = False
    ) -> None:
        self.close_connection = self.close_connection or close
        body = as_json({"error": {"code": code, "message": message}})
        self._send(status or _STATUS.get(code, HTTPStatus.BAD_REQUEST), body, "application/json")

    def _send(self, status: HTTPStatus, content: bytes | None, kind: str) -> None:
        """Send an answer, without ``content`` only its headers."""
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind}.items():
            self.send_header(name, value)
        if content is not None:
            self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if content is not None and self.command != "HEAD":
            for start in range(0, len(content), PIECE_BYTES):  # each must be taken in `timeout`
                self.wfile.write(content[start : start + PIECE_BYTES])

    def log_message(self, format: str, *args: Any) -> None:
        """Log for --debug only; the query is not logged, since it may hold what was typed."""
        log.debug("%s %s", self.command, self._url_path())
