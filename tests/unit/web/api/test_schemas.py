import json

import pytest
from pydantic import ValidationError

from elmokit.web.api.answers import RequestError
from elmokit.web.api.schemas import (
    EmbedRequest,
    OpenAIRequest,
    PredictRequest,
    TokenizeRequest,
    parse,
)


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        (EmbedRequest, "inputs"),
        (TokenizeRequest, "inputs"),
        (PredictRequest, "inputs"),
        (OpenAIRequest, "input"),
    ],
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_many_token_ids_are_one_error(schema, field, depth):
    """An error for each of a million numbers took minutes, in which nobody was answered."""
    given = [1] * 1000
    for _ in range(depth - 1):
        given = [given]
    with pytest.raises(ValidationError) as caught:
        schema.model_validate_json(json.dumps({field: given}))
    assert caught.value.error_count() < 10


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        (EmbedRequest, {"inputs": "a", "model": "any", "raw_scores": True, "": 1}),
        (EmbedRequest, {"inputs": "a", "truncate": None, "normalize": None, "prompt_name": None}),
        (TokenizeRequest, {"inputs": "a", "prompt": None, "add_special_tokens": None}),
        (OpenAIRequest, {"input": "a", "model": None, "dimensions": None, "encoding_format": None}),
        (PredictRequest, {"inputs": "a", "truncate": True}),
        (OpenAIRequest, {"input": "a", "input_type": "query", "truncate": "END", "user": None}),
    ],
)
def test_fields_of_other_servers_are_ignored_and_model_may_be_missing(schema, body):
    parsed = parse(schema, json.dumps(body).encode())
    text = next(iter(schema.model_fields))
    assert parsed == schema.model_validate({text: "a"} | {k: v for k, v in body.items() if v})


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b'{"inputs": "a", ', 400, "not JSON"),
        (b'["a"]', 422, "must be a JSON object"),
        (b'{"k": 1}', 422, "`inputs` is missing"),
        (b'{"inputs": "a", "normalize": 1, "k": 1}', 422, "`normalize` must be true or false"),
        (b'{"inputs": [1]}', 422, "got numbers"),
    ],
)
def test_the_first_fault_of_a_body_is_named(body, status, message):
    with pytest.raises(RequestError, match=message) as caught:
        parse(EmbedRequest, body)
    assert caught.value.status == status


def test_a_field_of_text_is_said_to_take_text():
    with pytest.raises(RequestError, match="`user` must be a string, got 5"):
        parse(OpenAIRequest, b'{"input": "a", "model": "en", "user": 5}')
