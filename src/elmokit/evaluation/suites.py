"""Suites of targeted tests in the JSON form of SyntaxGym: regions, conditions, formulas.

An item has conditions, each a sentence in numbered regions; a prediction is a formula over sums of
surprisals in regions, such as ``(5;%mismatch%) > (5;%match%)``, which holds for an item or not.
Source: Gauthier et al. 2020 (SyntaxGym); Hu et al. 2020.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from elmokit.errors import FormatError
from elmokit.evaluation.pairs import READINGS, Accuracy, Reading, share_of
from elmokit.evaluation.surprisal import TypedWord, typed_words
from elmokit.files.json_files import read_json
from elmokit.weights.stored_bilm import LoadedBiLM

ALL = "all"
"""Name of the row that says in how many items every prediction holds."""
_SUM = re.compile(r"\(\s*(\d+|\*)\s*;\s*%([^%]+)%\s*\)")
# a formula is evaluated: nothing but arithmetic and comparisons may be in it
_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Lt, ast.Gt, ast.Eq, ast.BinOp,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.UnaryOp, ast.USub, ast.Constant, ast.Name, ast.Load,
)  # fmt: skip
_Sums = dict[tuple[str, int | None], float]
"""Bits by condition and region; None: of the whole sentence."""


class _Region(BaseModel):
    region_number: int
    content: str


class _Condition(BaseModel):
    condition_name: str
    regions: list[_Region] = Field(min_length=1)

    @property
    def text(self) -> str:
        return " ".join(" ".join(region.content for region in self.regions).split())


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
    """In which share of the items a prediction holds."""

    prediction: str
    """Its formula, or `ALL`."""
    items: int
    readings: dict[Reading, Accuracy]


class Suite:
    """A suite that was read; `score` gives its figures."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            suite = _Suite.model_validate(read_json(path, advice="A SyntaxGym suite is expected."))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise FormatError(f"{path}: no SyntaxGym suite: `{place}`: {first['msg']}.") from error
        self._items = suite.items
        self._formulas = [_Formula(prediction.formula, path) for prediction in suite.predictions]
        for item in suite.items:
            regions = [
                (condition.condition_name, number)
                for condition in item.conditions
                for number in (None, *(region.region_number for region in condition.regions))
            ]
            if len(set(regions)) < len(regions):
                raise FormatError(
                    f"{path}: item {item.item_number} has a condition or region twice."
                )
            for formula in self._formulas:
                for name, region in formula.sums:
                    if (name, region) not in regions:
                        names = ", ".join(sorted({name for name, _ in regions}))
                        raise FormatError(
                            f"{path}: item {item.item_number} has no region {region or '*'} of the "
                            f"condition {name!r}, which the formula {formula.text!r} names; its "
                            f"conditions are {names}."
                        )

    def score(
        self, model: LoadedBiLM | str | PathLike[str], **options: Any
    ) -> list[PredictionFigures]:
        """Return the figures of every prediction, and of all of them together.

        ``options`` are those of `typed_words`.
        """
        texts = [condition.text for item in self._items for condition in item.conditions]
        scored = iter(typed_words(model, texts, **options))
        holds = np.zeros((len(self._formulas), len(READINGS), len(self._items)), dtype=bool)
        for number, item in enumerate(self._items):
            of_conditions = [(condition, next(scored)) for condition in item.conditions]
            for way, reading in enumerate(READINGS):
                sums = _sums(of_conditions, reading)
                for row, formula in enumerate(self._formulas):
                    holds[row, way, number] = formula.holds(sums)
        rows = zip([formula.text for formula in self._formulas], holds, strict=True)
        return [
            PredictionFigures(
                prediction=name,
                items=len(self._items),
                readings={
                    reading: share_of(values.astype(np.float64))
                    for reading, values in zip(READINGS, row, strict=True)
                },
            )
            for name, row in (*rows, (ALL, np.asarray(holds.all(axis=0))))
        ]


class _Formula:
    def __init__(self, text: str, path: Path) -> None:
        self.text = text
        self.sums: list[tuple[str, int | None]] = []

        def name_of(match: re.Match[str]) -> str:
            self.sums.append((match[2], None if match[1] == "*" else int(match[1])))
            return f"sum{len(self.sums) - 1}"

        code = _SUM.sub(name_of, text).replace("[", "(").replace("]", ")")
        code = re.sub(r"(?<![<>=])=(?!=)", "==", code).replace("&", " and ").replace("|", " or ")
        try:
            tree = ast.parse(code.strip(), mode="eval")
            is_safe = all(isinstance(node, _ALLOWED) for node in ast.walk(tree))
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            if not is_safe or names != {f"sum{k}" for k in range(len(self.sums))}:
                raise SyntaxError
        except (SyntaxError, ValueError, RecursionError) as error:
            raise FormatError(
                f"{path}: the formula {text!r} cannot be read. Sums such as (5;%condition%) or "
                "(*;%condition%) may be added, subtracted, compared by < > = and joined by & and |."
            ) from error
        self._code = compile(tree, str(path), "eval")

    def holds(self, sums: _Sums) -> bool:
        """Tell whether the formula is true of an item; a division by 0 makes it false."""
        values = {f"sum{number}": sums[key] for number, key in enumerate(self.sums)}
        try:
            return bool(eval(self._code, {"__builtins__": {}}, values))  # only what is allowed
        except ZeroDivisionError:
            return False


def _sums(conditions: Sequence[tuple[_Condition, list[TypedWord]]], reading: Reading) -> _Sums:
    sums: _Sums = {}
    for condition, words in conditions:
        left, name = iter(words), condition.condition_name
        sums[name, None] = 0.0
        for region in condition.regions:
            own = [next(left) for _ in region.content.split()]
            forward, backward = sum(w.forward for w in own), sum(w.backward for w in own)
            by_reading = {"forward": forward, "backward": backward, "summed": forward + backward}
            sums[name, region.region_number] = by_reading[reading]
            sums[name, None] += by_reading[reading]
    return sums
