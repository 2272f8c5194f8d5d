"""The exceptions of elmokit."""

import pytest

from elmokit import errors
from elmokit.errors import (
    ConfigError,
    ElmokitError,
    FormatError,
    InputError,
    MissingExtraError,
    as_input_error,
)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (ConfigError("x"), ValueError),
        (FormatError("x"), ValueError),
        (InputError("x"), ValueError),
        (MissingExtraError("zstandard", extra="zst"), ImportError),
    ],
)
def test_each_can_be_caught_as_ours_and_as_the_builtin(error, builtin):
    assert isinstance(error, ElmokitError)
    assert isinstance(error, builtin)


@pytest.mark.parametrize("is_clone", [False, True])
def test_a_missing_extra_says_what_to_install(tmp_path, monkeypatch, is_clone):
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "src" / "elmokit" / "errors.py"))
    if is_clone:
        (tmp_path / "constraints.txt").touch()
    error = MissingExtraError("kiwipiepy", extra="ko")
    assert "'kiwipiepy'" in str(error)
    assert "[ko]" in str(error)
    assert (f"cd {tmp_path} && pip install -c constraints.txt" in str(error)) == is_clone
    assert (error.module, error.extra) == ("kiwipiepy", "ko")


@pytest.mark.parametrize("kind", [ValueError, TypeError])
def test_a_check_at_the_door_is_about_the_input(kind):
    with pytest.raises(InputError, match="`layers` must be 3") as raised, as_input_error():
        raise kind("`layers` must be 3")
    assert type(raised.value.__cause__) is kind
