"""The exceptions of elmokit."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Literal

import numpy as np
import pytest

from elmokit import errors
from elmokit.config import to_dict
from elmokit.errors import (
    Bounds,
    CheckedFields,
    ConfigError,
    ElmokitError,
    FormatError,
    InputError,
    MissingExtraError,
    Share,
    as_input_error,
    check_choice,
    quoted,
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


@pytest.mark.parametrize(
    ("system", "path", "word"),
    [
        ("posix", "my run", "'my run'"),
        ("posix", "runs/한국어", "'runs/한국어'"),
        ("nt", "C:\\runs\\one", "C:\\runs\\one"),
        ("nt", "C:\\my runs", '"C:\\my runs"'),
    ],
)
def test_paths_in_commands_are_quoted_for_the_shell(system, path, word, monkeypatch):
    monkeypatch.setattr(errors, "os", SimpleNamespace(name=system))
    assert quoted(Path(path)) == word


@dataclass(frozen=True, kw_only=True)
class Strict(CheckedFields):
    count: Annotated[int, Bounds(1, 100)] = 1
    share: Share = 0.5


@dataclass(frozen=True, kw_only=True)
class Optional(CheckedFields):
    limit: Annotated[int, Bounds(1, 100)] | None = None
    share: Share | None = None


class TestBounds:
    @pytest.mark.parametrize("kind", [np.float32, np.float16])
    def test_numbers_of_numpy(self, kind):
        assert to_dict(Strict(count=np.uint8(7), share=kind(0.25))) == {"count": 7, "share": 0.25}
        for settings in ({"share": kind("nan")}, {"count": kind(2)}, {"count": np.int64(101)}):
            with pytest.raises(ConfigError, match=f"`{next(iter(settings))}`"):
                Strict(**settings)

    @pytest.mark.parametrize("value", [True, np.True_, "1", [1], 1j, None])
    @pytest.mark.parametrize("name", ["count", "share"])
    def test_what_is_no_number(self, name, value):
        with pytest.raises(ConfigError, match=rf"`{name}` .*got "):
            Strict(**{name: value})

    def test_none_is_allowed_where_the_type_has_it(self):
        assert (Optional(limit=None).limit, Optional(share=None).share) == (None, None)
        for settings in ({"limit": 0}, {"share": 2.0}, {"limit": True}):
            with pytest.raises(ConfigError, match=f"`{next(iter(settings))}`"):
                Optional(**settings)


@dataclass(frozen=True, kw_only=True)
class Named(CheckedFields):
    kind: Literal["fast", "slow"] = "fast"
    layers: Literal["top"] | int = 3
    note: Annotated[str, "not bounds"] = ""
    other: Literal["some"] | None = None


class TestChoices:
    def test_a_choice_is_returned_and_none_is_one_where_the_type_has_it(self):
        assert check_choice("slow", Literal["fast", "slow"], name="kind") == "slow"
        assert Named(kind="slow", other=None).other is None

    @pytest.mark.parametrize("value", ["Fast", "", 1, None, ["fast"]])
    def test_anything_else_is_told_with_the_choices(self, value):
        with pytest.raises(InputError, match=r"`kind` .*fast, slow, got "):
            check_choice(value, Literal["fast", "slow"], name="kind")
        with pytest.raises(ConfigError, match=r"`kind` .*fast, slow, got "):
            Named(kind=value)
