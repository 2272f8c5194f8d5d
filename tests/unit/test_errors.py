"""The exceptions of elmokit."""

import numpy as np
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


@pytest.mark.parametrize(
    ("where", "command"),
    [
        ("site-packages", 'pip install "elmokit[ko]"'),
        ("clone", 'pip install -c {clone}/constraints.txt -e "{clone}[ko]"'),
        ("in the clone", 'pip install -c constraints.txt -e ".[ko]"'),
    ],
)
def test_a_missing_extra_says_what_to_install(tmp_path, monkeypatch, where, command):
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "src" / "elmokit" / "errors.py"))
    if "clone" in where:
        for name in ("constraints.txt", "pyproject.toml"):
            (tmp_path / name).touch()
    if where.startswith("in"):
        monkeypatch.chdir(tmp_path)
    error = MissingExtraError("kiwipiepy", extra="ko")
    assert "'kiwipiepy'" in str(error)
    assert str(error).endswith(command.format(clone=tmp_path))
    assert (error.module, error.extra) == ("kiwipiepy", "ko")


def test_a_package_in_a_version_that_does_not_do_is_named_with_it():
    assert f"version {np.__version__}" in str(MissingExtraError("numpy", extra="x"))


@pytest.mark.parametrize("kind", [ValueError, TypeError])
def test_a_check_at_the_door_is_about_the_input(kind):
    with pytest.raises(InputError, match="`layers` must be 3") as raised, as_input_error():
        raise kind("`layers` must be 3")
    assert type(raised.value.__cause__) is kind
