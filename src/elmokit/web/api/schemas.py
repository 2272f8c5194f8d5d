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

# what an error says that a field may be
_TEXTS = Field(description="a string or a list of strings")
_TRUTH = Field(description="true or false")
_WHOLE = Field(description="a whole number")
_TEXT = Field(description="a string")
_PROMPT = Field(description="left out: this model has no prompts")


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True)


class EmbedRequest(_Request):
    """Of /embed and /embed_all."""

    inputs: Annotated[StrictStr | FailFast[StrictStr | Words], _TEXTS]
    truncate: Annotated[StrictBool, _TRUTH] = False
    truncation_direction: Annotated[
        Literal["Right", "right"] | None, Field(description='"right"')
    ] = None
    normalize: Annotated[StrictBool | None, _TRUTH] = None
    dimensions: Annotated[StrictInt | None, _WHOLE] = None
    prompt_name: Annotated[None, _PROMPT] = None


class TokenizeRequest(_Request):
    """Of /tokenize."""

    inputs: Annotated[StrictStr | FailFast[StrictStr], _TEXTS]
    add_special_tokens: Annotated[StrictBool, _TRUTH] = True
    prompt_name: Annotated[None, _PROMPT] = None


class PredictRequest(_Request):
    """Of /predict/{run}."""

    inputs: Annotated[StrictStr | FailFast[StrictStr | FailFast[StrictStr | Words]], _TEXTS]


class OpenAIRequest(_Request):
    """Of /v1/embeddings."""

    input: Annotated[StrictStr | FailFast[StrictStr], _TEXTS]
    model: Annotated[StrictStr | None, _TEXT] = None
    encoding_format: Annotated[
        Literal["float", "base64"], Field(description='"float" or "base64"')
    ] = "float"
    dimensions: Annotated[StrictInt | None, _WHOLE] = None
    user: Annotated[StrictStr | None, _TEXT] = None


def parse(schema: type[Schema], body: bytes) -> Schema:
    """Read a body; unknown fields are ignored, as by other servers, and null is no value.

    Raises:
        RequestError: 400 if it is no JSON, 422 if it is not what the route takes.
    """
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
        first = error.errors(include_url=False, include_input=False)[0]
    name = str(first["loc"][0])
    if first["type"] == "missing":
        raise RequestError(422, f"`{name}` is missing.", parameter=name)
    message = f"`{name}` must be {schema.model_fields[name].description}, got "
    if name in ("inputs", "input") and _holds_number(fields[name]):
        message += (
            "numbers: ids of another model's tokenizer mean nothing to this one (langchain: "
            "check_embedding_ctx_length=False)."
        )
    else:
        message += f"{fields[name]!r:.60}."
    raise RequestError(422, message, parameter=name)


def _holds_number(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and _holds_number(value[0])
    return isinstance(value, int | float) and not isinstance(value, bool)
