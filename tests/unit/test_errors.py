"""The exceptions of elmokit."""

import pytest

from elmokit.errors import ConfigError, ElmokitError, FormatError, MissingExtraError


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (ConfigError("x"), ValueError),
        (FormatError("x"), ValueError),
        (MissingExtraError("zstandard", extra="zst"), ImportError),
    ],
)
def test_each_can_be_caught_as_ours_and_as_the_builtin(error, builtin):
    assert isinstance(error, ElmokitError)
    assert isinstance(error, builtin)


def test_a_missing_extra_says_what_to_install():
    error = MissingExtraError("kiwipiepy", extra="ko")
    assert str(error) == (
        "This needs the package 'kiwipiepy', which is not installed. "
        'Install it with: pip install "elmokit[ko]"'
    )
    assert (error.module, error.extra) == ("kiwipiepy", "ko")
