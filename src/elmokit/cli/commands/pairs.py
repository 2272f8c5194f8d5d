"""`elmokit pairs`: minimal pairs of grammar."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, check_output, write_table
from elmokit.errors import InputError, counted
from elmokit.files.lines import numbered_lines
from elmokit.files.sources import plain_suffix

if TYPE_CHECKING:
    from elmokit.evaluation.pairs import Pair, PairFigures, PairScores

MAX_VALUES = 200
"""A label with more values, such as an id, makes no groups."""
_COLUMNS = ("sentence_good", "sentence_bad")
_FIGURES = ("good_forward", "good_backward", "bad_forward", "bad_backward", "has_unknown")
_HEADER = f"{'pairs':>7}{'forward':>22}{'backward':>22}{'summed':>22}{'unknown':>9}"


def pairs(
    model: options.ModelArgument,
    file: Annotated[list[Path], typer.Argument(metavar="FILE...")],
    *,
    compare: Annotated[list[str] | None, typer.Option(metavar="MODEL")] = None,
    by: Annotated[list[str] | None, typer.Option(metavar="LABEL")] = None,
    good: str = _COLUMNS[0],
    bad: str = _COLUMNS[1],
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    batch_size: options.ScoringBatchOption = 1024,
    tokenizer: str | None = None,
    state: str = "warm",
    unknown: str = "auto",
    precision: str = "auto",
    overwrite: bool = False,
    device: str = "auto",
    threads: options.ThreadsOption = None,
) -> Result:
    """Print how often a model finds the better sentence of a pair more probable.

    FILE has JSON lines with sentence_good and sentence_bad, as BLiMP has them, or is a table with
    these columns (.csv, or separated by tabs). Accuracies are forward, backward and summed, in
    percent with 95 % intervals; a tie counts as half. A .json FILE is a suite of SyntaxGym, with
    regions and formulas: the share of its items for which a formula holds.

    Args:
        compare: Another model on the same pairs, with a paired test; repeatable.
        by: Column whose values are shown apart, repeatable; default: all with 2 to
            200 values, and at most half as many as pairs.
        good: Column of the better sentence.
        bad: Column of the worse sentence.
        output: Write a row per pair with its labels and the bits of both sentences, separated by
            tabs.
        precision: fp32, bf16 or auto, as for `elmokit perplexity`.
    """
    from elmokit.evaluation import pairs as minimal
    from elmokit.evaluation.text_scorer import open_scorer

    check_output(output, inputs=file, overwrite=overwrite)
    suites = [path for path in file if _is_suite(path, good)]
    if suites:
        others = compare or by or output or tokenizer or (good, bad) != _COLUMNS
        if others or device != "auto" or suites != file:
            raise InputError(
                "Suites (.json) are scored by themselves: --compare, --by, --good, --bad, -o, "
                "--tokenizer and --device are for pairs."
            )
        scoring = {"state": state, "precision": precision, "unknown": unknown}
        return _suites(model, file, batch_size=batch_size, **scoring)
    rows = [pair for path in file for pair in minimal.read_pairs(path, good=good, bad=bad)]
    labels = _labels(rows, by)
    clashes = [name for name in _label_names(rows) if name in ("model", *_COLUMNS, *_FIGURES)]
    if output is not None and clashes:
        raise InputError(f"{clashes[0]!r} is a column of the output, too. Rename it in the pairs.")
    names = [model, *(compare or [])]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"MODEL and --compare name {twice[0]!r} twice.")
    scores: dict[str, PairScores] = {}
    metadata: dict[str, Any] = {}
    for name in names:
        scorer, splitter = open_scorer(
            name, tokenizer=tokenizer, device=device, batch_size=batch_size, state=state,
            precision=precision, unknown=unknown,
        )  # fmt: skip
        scores[name] = minimal.score_pairs(scorer, splitter, rows)
        metadata[name] = scorer.metadata(tokenizer=splitter)
    if output is not None:
        _write(output, rows, scores)
    figures = {
        name: {
            "all": minimal.figures_of(part),
            "by": {label: minimal.figures_by(part, rows, label) for label in labels},
        }
        for name, part in scores.items()
    }
    comparisons = {
        name: [minimal.compare(scores[model], scores[name], way) for way in minimal.SCORINGS]
        for name in compare or ()
    }
    lines = []
    for name in names:
        whole, parts = figures[name]["all"], figures[name]["by"]
        lines += [f"{name}: {counted(len(rows), 'pair')}", f"{'':<42}{_HEADER}", _row("all", whole)]
        lines += [
            _row(f"{label}={value}", part)
            for label, values in parts.items()
            for value, part in values.items()
        ]
        without = whole.without_unknown
        shares = [f"{way} {100 * share:.1f}" for way, share in without.items() if share is not None]
        if whole.unknown and shares:
            lines.append(f"without pairs that have unknown words: {', '.join(shares)}")
    lines += [
        f"{name} minus {model}, {part.reading}: {100 * part.difference:+.1f} "
        f"[{100 * part.low:+.1f}, {100 * part.high:+.1f}], p = {part.p:.3g}"
        for name, parts in comparisons.items()
        for part in parts
    ]
    scored = {"models": figures, "comparisons": comparisons, "metadata": metadata}
    return Result(scored, lines)


def _is_suite(path: Path, good: str) -> bool:
    """Tell whether a file is a suite; a ``.json`` file may also have pairs, one a line."""
    if plain_suffix(path) != ".json" or not path.is_file():
        return False
    return good not in next((line for _, line in numbered_lines(path) if line.strip()), "")


def _suites(model: str, files: list[Path], **scoring: Any) -> Result:
    from elmokit.evaluation.suites import Suite
    from elmokit.weights.stored_bilm import read_bilm

    suites = [Suite(path) for path in files]
    opened = read_bilm(model)
    figures = {str(suite.path): suite.score(opened, **scoring) for suite in suites}
    lines = []
    for name, rows in figures.items():
        lines.append(f"{name}: {rows[0].items:,} items")
        for row in rows:
            shares = (f"{way} {_share(part)}" for way, part in row.readings.items())
            lines.append(f"{row.prediction}\n    {', '.join(shares)}")
    return Result({"suites": figures, "metadata": opened.metadata()}, lines)


def _labels(rows: "list[Pair]", by: list[str] | None) -> list[str]:
    names = _label_names(rows)
    for name in by or ():
        if name not in names:
            raise InputError(f"--by {name}: the pairs have {', '.join(names) or 'no labels'}.")
    if by is not None:
        return by
    most = min(MAX_VALUES, len(rows) // 2)
    return [n for n in names if 2 <= len({pair.labels.get(n) for pair in rows}) <= most]


def _share(figure: Any) -> str:
    return f"{100 * figure.accuracy:.1f} [{100 * figure.low:.1f}, {100 * figure.high:.1f}]"


def _row(name: str, part: "PairFigures") -> str:
    shares = "".join(f" {_share(figure):>21}" for figure in part.readings.values())
    return f"{name[:41]:<42}{part.pairs:>7,}{shares}{100 * part.unknown:>8.1f}%"


def _label_names(rows: "list[Pair]") -> list[str]:
    return list(dict.fromkeys(name for pair in rows for name in pair.labels))


def _write(output: Path, rows: "list[Pair]", scores: "dict[str, PairScores]") -> None:
    labels, lines = _label_names(rows), []
    for name, part in scores.items():
        bits = [part.good[0], part.good[1], part.bad[0], part.bad[1]]
        for pair, *values, unknown in zip(rows, *bits, part.has_unknown, strict=True):
            cells = (f"{value:.4f}" for value in values)
            own = (pair.labels.get(label, "") for label in labels)
            lines.append([name, pair.good, pair.bad, *own, *cells, int(unknown)])
    write_table(output, ["model", *_COLUMNS, *labels, *_FIGURES], lines)
