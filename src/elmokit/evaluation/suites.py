"""Suites of targeted tests in the JSON form of SyntaxGym: regions, conditions, formulas.

An item has conditions, each a sentence in numbered regions; a prediction is a formula over sums of
surprisals in regions, such as ``(5;%mismatch%) > (5;%match%)``, which holds for an item or not.
Source: Gauthier et al. 2020 (SyntaxGym); Hu et al. 2020.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from elmokit.errors import FormatError
from elmokit.evaluation.pairs import READINGS, Accuracy, Reading, share_of
from elmokit.evaluation.typed_words import TypedWord, typed_words
from elmokit.files.json_files import read_json
from elmokit.weights.stored_bilm import LoadedBiLM

ALL = "all"
"""Name of the row that says in how many items every prediction holds."""
_SUM = re.compile(r"\(\s*(\d+|\*)\s*;\s*%([^%]+)%\s*\)")
_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Lt, ast.Gt, ast.Eq, ast.BinOp,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.UnaryOp, ast.USub, ast.Constant, ast.Name, ast.Load,
)  # fmt: skip


class _Region(BaseModel):
    region_number: int
    content: str


class _Condition(BaseModel):
    condition_name: str
    regions: list[_Region] = Field(min_length=1)


class _Item(BaseModel):
    item_number: int
    conditions: list[_Condition] = Field(min_length=1)


class _Prediction(BaseModel):
    formula: str


class _Suite(BaseModel):
    items: list[_Item] = Field(min_length=1)
    predictions: list[_Prediction] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class PredictionFigures:
    """How often a prediction holds."""

    prediction: str
    """Its formula, or `ALL`."""
    items: int
    readings: dict[Reading, Accuracy]
    """Share of the items, with an interval from a bootstrap over them."""


class Suite:
    """A suite that was read; `score` gives its figures."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            suite = _Suite.model_validate(read_json(path, advice="A SyntaxGym suite is expected."))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise FormatError(
                f"{path}: `{place}`: {first['msg']}. A SyntaxGym suite has `items` with "
                "`conditions` of `regions`, and `predictions` with a `formula`."
            ) from error
        self._items = suite.items
        self._formulas = [_Formula(prediction.formula, path) for prediction in suite.predictions]
        for item in suite.items:
            known = {
                (condition.condition_name, region.region_number)
                for condition in item.conditions
                for region in condition.regions
            }
            names = {condition.condition_name for condition in item.conditions}
            num_regions = sum(len(condition.regions) for condition in item.conditions)
            if len(names) < len(item.conditions) or len(known) < num_regions:
                raise FormatError(
                    f"{path}: item {item.item_number} has two conditions of one name, or two "
                    "regions of one number in a condition."
                )
            for formula in self._formulas:
                for region, name in formula.sums:
                    if name not in names or (region is not None and (name, region) not in known):
                        raise FormatError(
                            f"{path}: item {item.item_number} has no region {region or '*'} of the "
                            f"condition {name!r}, which the formula {formula.text!r} names; its "
                            f"conditions are {', '.join(sorted(names))}."
                        )

    def score(
        self, model: LoadedBiLM | str | PathLike[str], **options: Any
    ) -> list[PredictionFigures]:
        """Return the figures of every prediction, and of all of them together.

        ``options`` are those of `typed_words`.
        """
        texts = [_text(condition) for item in self._items for condition in item.conditions]
        scored = iter(typed_words(model, texts, **options))
        holds = np.zeros((len(READINGS), len(self._formulas), len(self._items)), dtype=bool)
        for number, item in enumerate(self._items):
            words = {condition.condition_name: next(scored) for condition in item.conditions}
            sums = {
                condition.condition_name: _sums(condition, words[condition.condition_name])
                for condition in item.conditions
            }
            for way, reading in enumerate(READINGS):
                for row, formula in enumerate(self._formulas):
                    holds[way, row, number] = formula.holds(sums, reading)
        rows = [(formula.text, holds[:, row]) for row, formula in enumerate(self._formulas)]
        rows.append((ALL, np.asarray(holds.all(axis=1))))
        return [
            PredictionFigures(
                prediction=name,
                items=len(self._items),
                readings={
                    reading: share_of(row[way].astype(np.float64))
                    for way, reading in enumerate(READINGS)
                },
            )
            for name, row in rows
        ]


class _Formula:
    """A formula, of which nothing but arithmetic and comparisons is evaluated."""

    def __init__(self, text: str, path: Path) -> None:
        self.text = text
        self.sums: list[tuple[int | None, str]] = []
        """Region (None: all) and condition of every sum."""

        def name_of(match: re.Match[str]) -> str:
            self.sums.append((None if match[1] == "*" else int(match[1]), match[2]))
            return f"sum{len(self.sums) - 1}"

        code = _SUM.sub(name_of, text).replace("[", "(").replace("]", ")")
        code = re.sub(r"(?<![<>=])=(?!=)", "==", code).replace("&", " and ").replace("|", " or ")
        try:
            tree = ast.parse(code.strip(), mode="eval")
            wrong = next((n for n in ast.walk(tree) if not isinstance(n, _ALLOWED)), None)
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            if wrong is not None or names != {f"sum{k}" for k in range(len(self.sums))}:
                raise SyntaxError
        except (SyntaxError, ValueError, RecursionError) as error:
            raise FormatError(
                f"{path}: the formula {text!r} cannot be read. Sums such as (5;%condition%) or "
                "(*;%condition%) may be added, subtracted, compared by < > = and joined by & and |."
            ) from error
        self._code: CodeType = compile(tree, str(path), "eval")

    def holds(self, sums: "Mapping[str, _Sums]", reading: Reading) -> bool:
        """Tell whether the formula is true of an item; a division by 0 makes it false."""
        values = {
            f"sum{number}": sums[name][reading][region]
            for number, (region, name) in enumerate(self.sums)
        }
        try:
            return bool(eval(self._code, {"__builtins__": {}}, values))  # only what is allowed
        except ZeroDivisionError:
            return False


_Sums = dict[Reading, dict[int | None, float]]
"""Bits by region; None: of the whole sentence."""


def _text(condition: _Condition) -> str:
    return " ".join(" ".join(region.content for region in condition.regions).split())


def _sums(condition: _Condition, words: Sequence[TypedWord]) -> _Sums:
    sums: _Sums = {reading: {None: 0.0} for reading in READINGS}
    left = iter(words)
    for region in condition.regions:
        own = [next(left) for _ in region.content.split()]
        forward, backward = (sum(getattr(word, way) for word in own) for way in READINGS[:2])
        for reading, bits in zip(READINGS, (forward, backward, forward + backward), strict=True):
            sums[reading][region.region_number] = bits
            sums[reading][None] += bits
    return sums
