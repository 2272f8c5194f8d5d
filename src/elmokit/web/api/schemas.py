"""Bodies of requests in the dialects of OpenAI and TEI."""

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError
from pydantic_core import from_json

from elmokit.web.server import RequestError

Item = TypeVar("Item")
FailFast = Annotated[list[Item], Field(fail_fast=True)]
"""A list whose first wrong item is the only one reported: reporting a million takes minutes."""
Words = FailFast[StrictStr]
"""A text that is split already."""
Schema = TypeVar("Schema", bound=BaseModel)


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True)


class EmbedRequest(_Request):
    """Body of /embed and /embed_all."""

    inputs: StrictStr | FailFast[StrictStr | Words]
    truncate: StrictBool = False
    truncation_direction: Literal["Right", "right"] | None = None
    normalize: StrictBool | None = None
    dimensions: StrictInt | None = None
    prompt_name: None = None


class TokenizeRequest(_Request):
    """Body of /tokenize."""

    inputs: StrictStr | FailFast[StrictStr]
    add_special_tokens: StrictBool = True
    prompt_name: None = None


class PredictRequest(_Request):
    """Body of /predict/{run}."""

    inputs: StrictStr | FailFast[StrictStr | FailFast[StrictStr | Words]]


class OpenAIRequest(_Request):
    """Body of /v1/embeddings."""

    input: StrictStr | FailFast[StrictStr]
    model: StrictStr | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: StrictInt | None = None
    user: StrictStr | None = None


def parse(schema: type[Schema], body: bytes) -> Schema:
    """Read a body; unknown fields are ignored, as by other servers, and null is no value."""
    try:
        content = from_json(body)
    except ValueError as error:
        raise RequestError(400, f"The body is not JSON: {error}.") from None
    if not isinstance(content, dict):
        raise RequestError(422, "The body must be a JSON object.")
    fields = {name: value for name, value in content.items() if value is not None}
    try:
        return schema.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    if first["type"] == "missing":
        raise RequestError(422, f"`{name}` is missing.", parameter=name)
    message = f"`{name}`: {first['msg']}, got {first['input']!r:.60}."
    if name in ("inputs", "input"):
        message += (
            " Ids of another model's tokenizer mean nothing to this one (langchain: "
            "check_embedding_ctx_length=False)."
        )
    raise RequestError(422, message, parameter=name)
