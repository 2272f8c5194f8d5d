import pytest

from elmokit.errors import InputError
from elmokit.web.api.settings import ServerSettings


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timeout_seconds": 0.0}, "timeout_seconds"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds"),
        ({"timeout_seconds": float("inf")}, "timeout_seconds"),
        ({"api_key": ""}, "not empty"),
        ({"api_key": "a b"}, "spaces"),
        ({"api_key": "열쇠"}, "ASCII"),
        ({"api_key": "a\n"}, "printable"),
    ],
)
def test_what_cannot_work_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        ServerSettings(name="m", **options)
