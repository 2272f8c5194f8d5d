"""Ranges, choices and numbers of dataclass fields."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

from elmokit.config import to_dict
from elmokit.errors import ConfigError, InputError
from elmokit.field_checks import check_choice, check_choices, check_ranges


@dataclass(frozen=True, kw_only=True)
class Strict:
    count: int = 1
    share: float = 0.5

    def __post_init__(self):
        check_ranges(self, count=(1, 100), share=(0.0, 1.0))


@dataclass(frozen=True, kw_only=True)
class Optional:
    limit: int | None = None
    share: float | None = None

    def __post_init__(self):
        check_ranges(self, limit=(1, 100), share=(0.0, 1.0))


class TestCheckRanges:
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
class Named:
    kind: Literal["fast", "slow"] = "fast"
    other: Literal["some"] | None = None

    def __post_init__(self):
        check_choices(self)


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
