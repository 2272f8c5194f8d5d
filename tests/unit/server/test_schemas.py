import json

import pytest
from pydantic import ValidationError

from elmokit.server.answers import RequestError
from elmokit.server.schemas import (
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


def test_unknown_fields_are_not_collected(monkeypatch):
    """An error of pydantic's for each of 250,000 took seconds, in which nobody was answered."""
    collected = []
    errors = ValidationError.errors
    monkeypatch.setattr(
        ValidationError, "errors", lambda self, **o: collected.append(self) or errors(self, **o)
    )
    body = {"inputs": "a", "": 1} | {f"k{number}": 1 for number in range(1000)}
    with pytest.raises(RequestError, match="no field ``") as caught:
        parse(EmbedRequest, json.dumps(body).encode())
    assert (caught.value.status, caught.value.parameter) == (422, "")
    assert not collected


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
