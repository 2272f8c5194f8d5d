"""Bodies of requests: what clients of OpenAI and of Text Embeddings Inference send."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError
from pydantic_core import from_json

from elmokit.web.api.answers import RequestError

Item = TypeVar("Item")
FailFast = Annotated[list[Item], Field(fail_fast=True)]
"""A list whose first wrong item is the only one reported: reporting a million takes minutes."""
Words = FailFast[StrictStr]
"""A text that is split already."""
Schema = TypeVar("Schema", bound=BaseModel)


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True)


class EmbedRequest(_Request):
    """Of /embed and /embed_all."""

    inputs: StrictStr | FailFast[StrictStr | Words]
    truncate: StrictBool | None = False
    truncation_direction: Literal["Right", "right"] | None = None
    normalize: StrictBool | None = None
    dimensions: StrictInt | None = None
    prompt_name: None = None


class TokenizeRequest(_Request):
    """Of /tokenize."""

    inputs: StrictStr | FailFast[StrictStr]
    add_special_tokens: StrictBool = True
    prompt_name: None = None


class PredictRequest(_Request):
    """Of /predict/{run}."""

    inputs: StrictStr | FailFast[StrictStr | FailFast[StrictStr | Words]]


class OpenAIRequest(_Request):
    """Of /v1/embeddings."""

    input: StrictStr | FailFast[StrictStr]
    model: StrictStr | None = None
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: StrictInt | None = None
    user: StrictStr | None = None


def parse(schema: type[Schema], body: bytes) -> Schema:
    """Read a body; unknown fields are ignored, as by other servers, and null is no value.

    Raises:
        RequestError: 400 if it is no JSON, 422 if it is not what the route takes.
    """
    try:
        given = from_json(body)
    except ValueError as error:
        raise RequestError(400, f"The body is not JSON: {error}.") from None
    if not isinstance(given, dict):
        raise RequestError(422, "The body must be a JSON object.")
    known = {name: given[name] for name in schema.model_fields if given.get(name) is not None}
    try:
        return schema.model_validate(known)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = str(first["loc"][0])
        if first["type"] == "missing":
            raise RequestError(422, f"`{field}` is missing.", parameter=field) from None
        raise RequestError(422, _what_is_wrong(field, given[field]), parameter=field) from None


def _what_is_wrong(field: str, given: Any) -> str:
    """Say what a field may be."""
    if field in ("inputs", "input"):
        expected = "a string or a list of strings"
        if _holds_number(given):
            return (
                f"`{field}` must be {expected}, got numbers: ids of another model's tokenizer mean "
                "nothing to this one (langchain: check_embedding_ctx_length=False)."
            )
    else:
        expected = {
            "prompt_name": "left out: this model has no prompts",
            "truncation_direction": '"right"',
            "encoding_format": '"float" or "base64"',
            "dimensions": "a whole number",
            "model": "a string",
            "user": "a string",
        }.get(field, "true or false")
    return f"`{field}` must be {expected}, got {given!r:.60}."


def _holds_number(given: Any) -> bool:
    if isinstance(given, list):
        return bool(given) and _holds_number(given[0])
    return isinstance(given, int | float) and not isinstance(given, bool)
