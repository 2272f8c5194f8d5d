"""A request that is not answered, and the error in the dialect of its route."""

import json
import logging
import traceback
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from elmokit.errors import InputError

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
