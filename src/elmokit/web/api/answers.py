"""Answers and errors as each dialect has them."""

import base64
import json
import logging
import traceback
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from pydantic_core import to_json
from starlette.responses import Response

from elmokit.errors import InputError

log = logging.getLogger(__name__)

_OPENAI_PATHS = ("/v1/", "/embeddings")
_MAX_MESSAGE = 500
"""Characters of an error; values of a request that it echoes can have any length."""
_TEI_TYPES = {422: "tokenizer", 500: "backend", 503: "unhealthy"}
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


@dataclass(eq=False)
class RequestError(Exception):
    """A request that is not answered."""

    status: int
    """Of HTTP."""
    message: str
    """What was found, where, and what is allowed."""
    _: KW_ONLY
    parameter: str | None = None
    """The field of the request that is at fault."""
    code: str | None = None
    """A word of the OpenAI dialect for programs."""
    retry_after: int | None = None
    """Seconds after which the same request may succeed."""
    close: bool = False
    """End the connection, on which more may come that is not read."""

    def __str__(self) -> str:
        return self.message

    @property
    def tei_type(self) -> str:
        """The ``error_type`` of Text Embeddings Inference."""
        if self.code == "rate_limit_exceeded":
            return "overloaded"
        return _TEI_TYPES.get(self.status, "validation")

    @property
    def openai_type(self) -> str:
        """The ``type`` of OpenAI."""
        default = "server_error" if self.status >= 500 else "invalid_request_error"
        return _OPENAI_TYPES.get(self.status, default)


def as_request_error(error: Exception) -> RequestError:
    """Return what to answer for an exception.

    Of what is no fault of the request the answer does not say what it was, since it may name files
    of this machine, and the log does not quote the message, since it may quote the text.
    """
    if isinstance(error, RequestError):
        return error
    if isinstance(error, InputError):
        return RequestError(422, str(error))
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("a computation failed with %s:\n%s", type(error).__name__, frames)
    return RequestError(500, "The computation failed. The log of the server has the reason.")


def error_response(path: str, error: RequestError) -> Response:
    """Return an error in the dialect of the route."""
    message = error.message
    if len(message) > _MAX_MESSAGE:
        message = f"{message[:_MAX_MESSAGE]}…"
    content: dict[str, Any] = {"error": message, "error_type": error.tei_type}
    if path.startswith(_OPENAI_PATHS):
        content = {
            "error": {
                "message": message,
                "type": error.openai_type,
                "param": error.parameter,
                "code": error.code,
            }
        }
    headers = {"Connection": "close"} if error.close else {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return json_response(content, status=error.status, headers=headers)


def json_response(
    content: Any, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return JSON values as an answer."""
    return Response(_as_json(content), status, headers, media_type="application/json")


def numbers(vectors: Float[np.ndarray, "W E"]) -> bytes:
    """Return an array as JSON whose numbers read back as the same float32."""
    return _array(to_json(row.tolist()) for row in vectors)


def texts_as_json(texts: Iterable[Any]) -> bytes:
    """Return the answers for texts as a JSON array."""
    return _array(map(_as_json, texts))


def openai_embeddings(
    vectors: Float[np.ndarray, "N E"], *, model: str, num_words: int, as_text: bool
) -> bytes:
    """Return vectors in the dialect of OpenAI, as numbers or (``as_text``) in base64."""

    def entry(index: int, vector: np.ndarray) -> bytes:
        plain = vector.astype("<f4").tobytes()
        embedding = base64.b64encode(plain).decode() if as_text else vector.tolist()
        return to_json({"object": "embedding", "index": index, "embedding": embedding})

    usage = {"prompt_tokens": num_words, "total_tokens": num_words}
    rest = to_json({"model": model, "usage": usage})[1:]
    entries = _array(entry(index, vector) for index, vector in enumerate(vectors))
    return b"".join((b'{"object":"list","data":', entries, b",", rest))


def _as_json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()


def _array(items: Iterable[bytes]) -> bytes:
    """Join JSON values; one call for all of them would let no other thread run meanwhile."""
    return b"[%s]" % b",".join(items)
