"""Suites of targeted tests in the JSON form of SyntaxGym: regions, conditions, formulas.

An item has conditions, each a sentence in numbered regions; a prediction is a formula over sums of
surprisals in regions, such as ``(5;%mismatch%) > (5;%match%)``, which holds for an item or not.
Source: Gauthier et al. 2020 (SyntaxGym); Hu et al. 2020.
"""

import ast
import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.errors import FormatError
from elmokit.evaluation.pairs import SCORINGS, Accuracy, Scoring, share_of
from elmokit.evaluation.surprisal import typed_words
from elmokit.files.json_files import parse_json
from elmokit.files.lines import read_text
from elmokit.weights.stored_bilm import LoadedBiLM

ALL = "all"
"""Name of the row that says in how many items every prediction holds."""
_SUM = re.compile(r"\(\s*(\d+|\*)\s*;\s*%([^%]+)%\s*\)")
# a formula is evaluated: nothing but arithmetic and comparisons may be in it
_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Lt, ast.Gt, ast.Eq, ast.BinOp,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.UnaryOp, ast.USub, ast.Constant, ast.Name, ast.Load,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PredictionFigures:
    """In which share of the items a prediction holds."""

    prediction: str
    """Its formula, or `ALL`."""
    items: int
    readings: dict[Scoring, Accuracy]


class Suite:
    """A suite that was read; `score` gives its figures."""

    def __init__(self, path: Path) -> None:
        self.path = path
        suite: Any = parse_json(
            read_text(path), source=path, advice="A SyntaxGym suite is expected."
        )
        try:
            self._items = [list(map(_regions_of, item["conditions"])) for item in suite["items"]]
            self._formulas = [_Formula(part["formula"], path) for part in suite["predictions"]]
        except (KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"{path}: no SyntaxGym suite: see {error}.") from error
        wanted = {key for formula in self._formulas for key in formula.sums}
        if not self._items or not wanted:
            raise FormatError(f"{path}: no SyntaxGym suite: it has no items or no formulas.")
        for number, item in enumerate(self._items, start=1):
            own = [(name, p) for name, parts in item for p in ("*", *(n for n, _ in parts))]
            if len(set(own)) < len(own) or not wanted <= set(own):
                raise FormatError(
                    f"{path}: item {number} must have the regions that formulas name, "
                    f"{sorted(wanted)}, and none twice; it has {sorted(own)}."
                )

    def score(
        self, model: LoadedBiLM | str | PathLike[str], **options: Any
    ) -> list[PredictionFigures]:
        """Return the figures of every prediction, and of all of them together.

        ``options`` are those of `typed_words`.
        """
        conditions = [parts for item in self._items for _, parts in item]
        texts = [" ".join(word for _, words in parts for word in words) for parts in conditions]
        typed = iter(typed_words(model, texts, **options))
        holds = np.zeros((len(self._formulas) + 1, len(SCORINGS), len(self._items)))
        for number, item in enumerate(self._items):
            sums: dict[tuple[str, str], np.ndarray] = {}
            for name, parts in item:
                words = [(w.forward, w.backward, w.forward + w.backward) for w in next(typed)]
                bits = np.array(words).reshape(-1, len(SCORINGS))
                sums[name, "*"] = bits.sum(axis=0)
                for place, content in parts:
                    sums[name, place], bits = bits[: len(content)].sum(axis=0), bits[len(content) :]
            for row, formula in enumerate(self._formulas):
                holds[row, :, number] = [
                    formula.holds([float(sums[key][way]) for key in formula.sums])
                    for way in range(len(SCORINGS))
                ]
        holds[-1] = holds[:-1].min(axis=0)
        return [
            PredictionFigures(
                prediction=name, items=len(self._items),
                readings={way: share_of(part) for way, part in zip(SCORINGS, row, strict=True)},
            )
            for name, row in zip([*(f.text for f in self._formulas), ALL], holds, strict=True)
        ]  # fmt: skip


def _regions_of(condition: Any) -> tuple[str, list[tuple[str, list[str]]]]:
    """Return the name of a condition, and number and words of its regions."""
    regions = condition["regions"]
    parts = [(str(region["region_number"]), region["content"].split()) for region in regions]
    return str(condition["condition_name"]), parts


class _Formula:
    def __init__(self, text: str, path: Path) -> None:
        self.text = text
        # condition and region of each sum
        self.sums = [(match[2], match[1]) for match in _SUM.finditer(text)]
        names = iter(range(len(self.sums)))
        code = _SUM.sub(lambda _: f"sum{next(names)}", text).replace("[", "(").replace("]", ")")
        code = re.sub(r"(?<![<>=])=(?!=)", "==", code).replace("&", " and ").replace("|", " or ")
        try:
            nodes = list(ast.walk(ast.parse(code.strip(), mode="eval")))
            used = {node.id for node in nodes if isinstance(node, ast.Name)}
            is_safe = all(isinstance(node, _ALLOWED) for node in nodes)
            is_safe &= all(isinstance(getattr(node, "value", 0), int | float) for node in nodes)
            if not is_safe or used != {f"sum{k}" for k in range(len(self.sums))}:
                raise SyntaxError
        except (SyntaxError, ValueError, RecursionError) as error:
            raise FormatError(
                f"{path}: the formula {text!r} cannot be read. Sums such as (5;%condition%) or "
                "(*;%condition%) may be added, subtracted, compared by < > = and joined by & and |."
            ) from error
        self._code = compile(code.strip(), str(path), "eval")

    def holds(self, sums: list[float]) -> bool:
        """Tell whether the formula is true of an item; a division by 0 makes it false."""
        values = {f"sum{number}": bits for number, bits in enumerate(sums)}
        try:
            return bool(eval(self._code, {"__builtins__": {}}, values))  # only what is allowed
        except ZeroDivisionError:
            return False
