"""The page over HTTP: static files, model files, calls. Nothing that is sent is run or written."""

from collections.abc import Callable, Mapping
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from elmokit.web.errors import RequestError
from elmokit.web.gate import BODY
from elmokit.web.page.calls import CallError, Calls

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
        try:
            content = await run_in_threadpool(calls.answer, method, body)
        except CallError as error:  # 200: a browser logs other answers as errors of the page
            raise RequestError(200, str(error), code=error.code) from error
        kind = _BYTES if method == "layers" else "application/json"
        return Response(content, headers=_HEADERS, media_type=kind)

    return Router([
        Route("/api/{method}", call, methods=["POST"]),
        Route("/{path:path}", file, methods=["GET"]),
    ])  # fmt: skip
