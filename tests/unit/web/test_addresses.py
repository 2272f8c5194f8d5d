"""Which Host headers name a server."""

import pytest

from elmokit.web.addresses import is_own_host


@pytest.mark.parametrize(
    ("given", "host", "is_own"),
    [
        ("127.0.0.1:80", "127.0.0.1", True),
        ("LOCALHOST:5", "127.0.0.1", True),
        ("[::1]:5", "127.0.0.1", True),
        ("10.1.2.3", "127.0.0.1", False),
        ("10.1.2.3:80", "0.0.0.0", True),
        ("[fe80::1]:5", "::", True),
        ("evil.example", "127.0.0.1", False),
        ("evil.example", "0.0.0.0", False),
        ("models.example", "models.example", True),
        ("10.1.2.3", "models.example", False),
        ("127.0.0.1:none", "127.0.0.1", False),
        ("", "127.0.0.1", False),
    ],
)
def test_numbers_and_own_names_are_own_and_other_names_are_not(given, host, is_own):
    assert is_own_host(given, host=host, port=None) == is_own


@pytest.mark.parametrize(("given", "is_own"), [("10.1.2.3:8080", True), ("10.1.2.3:80", False),
                                               ("10.1.2.3", False)])  # fmt: skip
def test_the_port_must_be_that_of_the_server(given, is_own):
    assert is_own_host(given, host="0.0.0.0", port=8080) == is_own
    assert is_own_host("localhost", host="127.0.0.1", port=80)
