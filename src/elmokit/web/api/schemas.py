"""Bodies of requests in the dialects of OpenAI and TEI, and the counters of /metrics."""

from bisect import bisect_left
from collections import Counter, defaultdict
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


_SECONDS = tuple(1e-5 * 1.5**power for power in range(1, 36))
_COUNTS = tuple(float(2**power) for power in range(17))
_BOUNDS = {
    "te_request_duration": _SECONDS, "te_request_tokenization_duration": _SECONDS,
    "te_request_queue_duration": _SECONDS, "te_request_inference_duration": _SECONDS,
    "te_request_input_length": _COUNTS, "te_batch_next_size": _COUNTS,
    "te_batch_next_tokens": _COUNTS,
}  # fmt: skip
"""The last value of each interval of the histograms."""
_LABELS = {
    "te_request_count": "method", "te_request_success": "method", "te_request_failure": "err"
}  # fmt: skip


class Metrics:
    """What /metrics shows."""

    def __init__(self) -> None:
        self._counts = {name: Counter[str]() for name in _LABELS}
        self._intervals = {name: [0] * (len(bounds) + 1) for name, bounds in _BOUNDS.items()}
        self._sums = defaultdict[str, float](float)

    def count(self, name: str, label: str) -> None:
        """Add one to a counter."""
        self._counts[name][label] += 1

    def observe(self, name: str, value: float) -> None:
        """Add a value to a histogram: seconds, tokens or texts."""
        self._intervals[name][bisect_left(_BOUNDS[name], value)] += 1
        self._sums[name] += value

    def render(self, *, queue_size: int) -> str:
        """Return all in the text format of Prometheus."""
        lines = ["# TYPE te_queue_size gauge", f"te_queue_size {queue_size}"]
        for name, label in _LABELS.items():
            lines.append(f"# TYPE {name} counter")
            counts = sorted(self._counts[name].items())
            lines += (f'{name}{{{label}="{value}"}} {count}' for value, count in counts)
        for name, intervals in self._intervals.items():
            lines.append(f"# TYPE {name} histogram")
            total = 0
            for bound, count in zip((*_BOUNDS[name], None), intervals, strict=True):
                total += count
                shown = "+Inf" if bound is None else f"{bound:.6g}"
                lines.append(f'{name}_bucket{{le="{shown}"}} {total}')
            lines += (f"{name}_sum {self._sums[name]!r}", f"{name}_count {total}")
        return "\n".join(lines) + "\n"
