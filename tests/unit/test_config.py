"""Dataclasses from dictionaries and back: strict keys, checked values, dotted overrides."""

import math
import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from elmokit.config import apply_overrides, from_dict, known_part, parse_record, read_toml, to_dict
from elmokit.errors import Bounds, CheckedFields, ConfigError, FormatError, Share
from elmokit.files.json_files import read_json


@dataclass(frozen=True, kw_only=True)
class Part:
    rate: float = 0.5
    sizes: tuple[tuple[int, int], ...] = ((1, 2),)
    kind: Literal["fast", "slow"] = "fast"

    def __post_init__(self):
        if self.rate < 0:
            raise ValueError("`rate` must not be negative")


@dataclass(frozen=True, kw_only=True)
class Whole:
    name: str = "x"
    part: Part = field(default_factory=Part)
    extra: Part | None = None
    limit: int | None = 3
    optional: Literal["none", "some"] | None = None


class TestFromDict:
    def test_nested_tables_tuples_and_none_and_back(self):
        data = {"part": {"sizes": [[3, 4], [5, 6]]}, "extra": {"kind": "slow"}, "limit": None}
        whole = from_dict(Whole, data)
        assert whole == Whole(
            part=Part(sizes=((3, 4), (5, 6))), extra=Part(kind="slow"), limit=None
        )
        assert from_dict(Whole, to_dict(whole)) == whole
        assert from_dict(Whole, {}) == Whole()

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            ({"nam": "y"}, r"`nam`.*`name`.*: extra, limit, name, optional, part\."),
            ({"part": {"rat": 1}}, r"`part\.rat`.*`rate`.*: kind, rate, sizes\."),
            ({"extra": {"zzz": 1}}, r"`extra\.zzz`: .*: kind, rate, sizes\."),
            (
                {"format_version": 7},
                r"`format_version`: unknown setting\. Allowed",
            ),  # like no name of a field
            ({"part": 5}, r"`part`.* 5\."),
            ({"part": {"rate": -1}}, r"`part`: `rate` .*negative"),
            ({"part": {"kind": "medium"}}, r"`part\.kind`: .*'fast' .*'slow', .*'medium'"),
            ({"part": {"sizes": [[1, "a"]]}}, r"`part\.sizes\.0\.1`: .*whole number.*'a'"),
            ({"limit": "many"}, r"`limit`: .*'many'"),
        ],
    )
    @pytest.mark.parametrize("override", ["name=y", "part.kind=slow"])
    def test_errors_name_file_key_and_value(self, data, message, override):
        overrides = [] if next(iter(data)) in override else [override]
        with pytest.raises(ConfigError, match=rf"^run\.toml: .*{message}"):
            from_dict(Whole, data, source="run.toml", overrides=overrides)

    @pytest.mark.parametrize(
        ("override", "message"),
        [
            ("part.rate=-2", r"`part`: `rate` .*negative"),
            ("part . rate = -2", "`rate`"),
            ("part.kind=medium", r"`part\.kind`"),
            ("parts=2", "`parts`"),
            ("part={rate=-2}", "`rate`"),
        ],
    )
    def test_an_override_is_named_beside_the_file(self, override, message):
        with pytest.raises(
            ConfigError, match=rf"^run\.toml with --set {re.escape(override)}: .*{message}"
        ):
            from_dict(Whole, {"part": {"rate": 2}}, source="run.toml", overrides=[override])


class TestReadToml:
    @pytest.mark.parametrize("content", [b"name = \n", b"name = '\xff'\n", b"a = " + b"[" * 5000])
    def test_a_file_that_is_no_toml_is_named(self, tmp_path, content):
        path = tmp_path / "run.toml"
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=r"/run\.toml: .*TOML"):
            read_toml(path)

    def test_a_byte_order_mark_is_no_part_of_it(self, tmp_path):
        (tmp_path / "run.toml").write_bytes(b"\xef\xbb\xbfseed = 3\r\n")
        assert read_toml(tmp_path / "run.toml") == {"seed": 3}


class TestOverrides:
    @pytest.mark.parametrize(
        ("text", "value"),
        [("5", 5), ("1e-3", 1e-3), ("true", True), ('"5"', "5"), ("slow", "slow"), ("a=b", "a=b"),
         ("[[1, 2], [3, 4]]", [[1, 2], [3, 4]]), ("", "")],
    )  # fmt: skip
    def test_values_are_read_as_toml_else_as_strings(self, text, value):
        assert apply_overrides({}, [f"part.rate={text}"]) == {"part": {"rate": value}}

    def test_a_table_leaves_its_other_values(self):
        data = {"part": {"rate": 1, "kind": "slow"}}
        assert apply_overrides(data, ["part={rate=3}"]) == {"part": {"rate": 3, "kind": "slow"}}
        assert apply_overrides(data, ["part.kind={a=1}"])["part"] == {"rate": 1, "kind": {"a": 1}}

    def test_none_is_none_where_the_type_has_it_and_a_choice_where_it_is_one(self):
        for given in ({"limit": "none", "extra": "none"}, {}):
            overrides = [] if given else ["limit=none", "extra=none"]
            built = from_dict(Whole, given, overrides=overrides)
            assert (built.limit, built.extra) == (None, None)
        assert from_dict(Whole, {"name": "none", "optional": "none"}) == Whole(
            name="none", optional="none"
        )

    @pytest.mark.parametrize("override", ["part.rate", "=5"])
    def test_an_override_without_key_or_value_is_refused(self, override):
        with pytest.raises(ConfigError, match=rf"--set .*key=value, .*'{override}'"):
            apply_overrides({}, [override])

    def test_a_value_is_no_table(self):
        with pytest.raises(ConfigError, match=r"part\.rate=2: `part` is a value"):
            apply_overrides({}, ["part=5", "part.rate=2"])


@dataclass(frozen=True, kw_only=True)
class Strict(CheckedFields):
    count: Annotated[int, Bounds(1, 100)] = 1
    share: Share = 0.5
    is_on: bool = False
    name: str = "x"
    parts: tuple[Part, ...] = ()
    free: dict[str, Any] = field(default_factory=dict)


class TestStrictTypes:
    @pytest.mark.parametrize(
        ("data", "key"),
        [
            ({"count": "12"}, "count"), ({"count": True}, "count"), ({"count": 2.0}, "count"),
            ({"count": 0}, "count"), ({"count": 10**400}, "count"), ({"count": None}, "count"),
            ({"share": "0.5"}, "share"), ({"share": True}, "share"), ({"share": math.nan}, "share"),
            ({"share": math.inf}, "share"), ({"share": 2}, "share"), ({"is_on": 1}, "is_on"),
            ({"is_on": "yes"}, "is_on"), ({"name": 5}, "name"),
            ({"parts": {}}, "parts"), ({"parts": [{"rate": "1"}]}, "parts.0.rate"),
            ({"parts": [{"rat": 1}]}, "parts.0.rat"), ({"parts": [{"rate": -1}]}, "parts.0"),
            ({"parts": [{"sizes": [[1, True]]}]}, "parts.0.sizes.0.1"), ({"free": []}, "free"),
            ({"parts": [{"sizes": [[1]]}]}, "parts.0.sizes.0"), ({"parts": [1]}, "parts.0"),
        ],
    )  # fmt: skip
    def test_nothing_is_converted(self, data, key):
        with pytest.raises(ConfigError, match=rf"^f\.json: .*`{key}") as raised:
            from_dict(Strict, data, source="f.json")
        assert len(str(raised.value)) < 300

    def test_a_whole_number_is_a_float_and_free_values_are_free(self):
        data = {"share": 1, "free": {"a": [math.inf, "\ud800", None]}}
        built = from_dict(Strict, data)
        assert (built.share, built.free) == (1.0, data["free"])


@dataclass(frozen=True, kw_only=True)
class Record:
    name: str
    part: Part | None = None


class TestRecords:
    @pytest.mark.parametrize("text", ["{}", "[]", "{", '{"name": 1}', '{"name": "a", "b": 1}'])
    def test_damage_names_file_and_advice(self, tmp_path, text):
        path, advice = tmp_path / "r.json", "Mend it."
        path.write_text(text)
        with pytest.raises(FormatError, match=r"r\.json.* Mend it\.$"):
            parse_record(Record, read_json(path, advice=advice), source=path, advice=advice)

    def test_known_parts_are_taken_of_other_programs_files(self):
        data = {"name": "a", "other": 1, "part": {"rate": 1.0, "more": 2}}
        known = known_part(Record, data)
        assert known == {"name": "a", "part": {"rate": 1.0}}
        expected = Record(name="a", part=Part(rate=1.0))
        assert parse_record(Record, known, source="f", advice="") == expected
