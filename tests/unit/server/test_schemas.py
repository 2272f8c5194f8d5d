import json

import pytest
from pydantic import ValidationError

from elmokit.server.schemas import EmbedRequest, OpenAIRequest, PredictRequest, TokenizeRequest


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
