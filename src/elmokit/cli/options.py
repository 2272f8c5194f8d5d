"""Options shared by several commands: a flag means the same everywhere."""

import os
import re
from collections.abc import Iterator, Mapping
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.cli.output import configure_logging
from elmokit.cli.threads import choose_threads
from elmokit.corpus.readers import ReadReport, TextLine, read_text_lines
from elmokit.errors import SEEDS, InputError, as_input_error
from elmokit.files.json_files import jsonable
from elmokit.files.sources import find_files
from elmokit.text.given_sentences import check_text
from elmokit.text.tokenizers.languages import LANGUAGES
from elmokit.text.tokenizers.registry import DEFAULT_TOKENIZER, describe_tokenizers
from elmokit.training.pretraining.presets import preset_names
from elmokit.weights.locate import TASK_RUNS


def _set_debug(ctx: Any, value: bool) -> bool:  # typer passes a base class of its Context
    ctx.meta["debug"] = value or ctx.meta.get("debug", False)
    configure_logging(debug=ctx.meta["debug"])
    return value


def seed_option(what: str) -> Any:
    """Return an option that takes a random seed; ``what`` says of what."""
    low, high = SEEDS
    return typer.Option(
        metavar="N", help=f"Random seed, {low} to {high:,}, {what}.", min=low, max=high
    )


def _set_json(ctx: Any, value: bool) -> None:
    ctx.meta["json"] = value


JsonOption = Annotated[bool, typer.Option("--json", expose_value=False, callback=_set_json)]
DebugOption = Annotated[
    bool,
    typer.Option(
        "--debug", help="Log details, such as the kernels in use, and the traceback of an error.",
        is_eager=True, expose_value=False, callback=_set_debug,
    ),
]  # fmt: skip
"""This and `JsonOption` are added to every command."""

SHARED_HELP = {
    "json": "Print the result as one JSON object.",
    "overwrite": "Replace existing output.",
    "device": "Device: auto, cpu or cuda.",
    "precision": "Numeric precision: fp32, bf16 or int8.",
    "state": "LSTM state before each sentence: warm (as in training) or reset.",
    "unknown": "Words outside the vocabulary are scored as: spelled (<UNK> and how it is spelled), "
    "unk (<UNK> alone), or auto: spelled if the model knows how.",
    "layers": "top, average, or a layer number (0 is the token layer).",
    "tokenizer": f"Tokenizer, instead of the model's: {describe_tokenizers()}.",
    "language": f"With the tokenizer simple: {', '.join(filter(None, LANGUAGES))}, whose "
    "abbreviations and clitics it knows. Default: none.",
    "recipe": "TOML file with settings, which override preset and defaults.",
    "vectors": "Static word vectors (word2vec, GloVe, fastText).",
    "min_count": "Minimum occurrences of a word.",
    "batch_tokens": "Words per batch; does not affect the result.",
    "host": "Address to listen on.",
    "port": "Port; 0 chooses a free one.",
    "valid": "Validation text; default: a held-out part of CORPUS.",
    "minutes": "Stop after this many minutes.",
    "epochs": "Stop after this many passes over CORPUS, counted in predicted words.",
    "tokens": "Stop after this many predicted words.",
    "resume": "Continue from the last checkpoint of the run.",
}
"""What options of these names do, unless the docstring of a command says otherwise."""

# --- models and what computes

_MODEL_HELP = "Model directory, or the name of a packaged model: en (default), ko."
ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help=_MODEL_HELP.replace(" (default)", ""))
]
ModelOption = Annotated[
    str | None, typer.Option("--model", "-m", metavar="MODEL", help=_MODEL_HELP)
]
RunModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", metavar="MODEL",
        help="Where the biLM of the run is now; default: where it was in training.",
    ),
]  # fmt: skip
ScoringBatchOption = Annotated[
    int, typer.Option(help="Sentences per batch; does not affect the result.", min=1)
]
WorkersOption = Annotated[
    int,
    typer.Option(help="Processes that split the text into words; no effect on the result.", min=1),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        help="Number of CPU threads; default: one per core.", min=1, callback=choose_threads
    ),
]
"""Parsing it sets the number."""

# --- text

_FORMATS = (
    "raw text, a sentence or a paragraph per line, or .jsonl, .csv, .tsv, .parquet "
    "(see --column); also compressed; - is standard input"
)
CORPUS_HELP = f"Files or folders of {_FORMATS}"
TEXT_HELP = f"Files of {_FORMATS}."
TextFieldOption = Annotated[
    str | None,
    typer.Option(
        "--column", "--text-field", metavar="NAME",
        help="Field of JSON lines, or column of a table, that holds the text; a number from 1 if "
        "it has no header; 0 reads whole lines. Default: text.",
    ),
]  # fmt: skip
TextArgument = Annotated[list[Path], typer.Argument(metavar="TEXT", help=TEXT_HELP)]
OptionalTextArgument = Annotated[
    list[Path] | None, typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default=False)
]
GivenTextOption = Annotated[
    list[str] | None,
    typer.Option("--text", "-t", metavar="STRING", help="A text instead of TEXT; repeatable."),
]
TOKENIZERS = describe_tokenizers()


def tokenizer_of(tokenizer: str | None, language: str | None) -> str | None:
    """Return ``--tokenizer`` and ``--language`` as one name."""
    return tokenizer if language is None else f"{tokenizer or DEFAULT_TOKENIZER}:{language}"


# --- training and tasks

PRESETS = ", ".join(preset_names())


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path without ``~``, which shells leave in ``--output=~/model``."""
    return Path(os.path.expanduser(path))


RunDirOption = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Directory for the run and its model.",
        callback=expanded,
    ),
]  # fmt: skip
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="a.b=c", help="Override a setting; repeatable."),
]
TaskRunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="Directory written by `elmokit train`, or a packaged tagger: "
        f"{', '.join(TASK_RUNS.names())}.",
    ),
]
LayerCacheOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Cache for biLM layers; default: the user cache folder."),
]


def counts_of(text: str | None) -> tuple[int, ...] | None:
    """Return ``--keep 500k,1M,2.5M`` as numbers."""
    if text is None:
        return None
    units = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
    parts = [re.fullmatch(r"([0-9.]+)([kmg]?)", part.strip().lower()) for part in text.split(",")]
    with as_input_error():
        counts = [round(float(part[1]) * units[part[2]]) for part in parts if part]
    if not all(parts) or sorted({*counts}) != counts or counts[0] < 1:
        raise InputError(f"--keep takes rising numbers such as 500k,1M,2.5M, got {text!r:.60}.")
    return tuple(counts)


def overrides(named: Mapping[str, Any], set_: list[str] | None) -> list[str]:
    """Return the settings that options and ``--set`` say; the latter override the former."""
    settings = {name: value for name, value in named.items() if value is not None}
    if settings.get("text.field") == "none":  # as a setting it means the default
        raise InputError('--column: a column called "none" cannot be chosen. Rename it.')
    return [*as_settings(settings), *(set_ or [])]


def as_settings(values: Mapping[str, Any]) -> list[str]:
    """Return settings as arguments of ``--set``; None becomes ``none``, a path a string."""
    return [
        f"{name}={'none' if value is None else dumps(value, ensure_ascii=False, default=jsonable)}"
        for name, value in values.items()
    ]


def layers_of(text: str) -> str | int:
    """Parse ``--layers``: a number, or a name that the library checks."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def name_layers(layers: str | int) -> str:
    """Return what ``--layers`` means, in words."""
    named = {"all": "all layers", "top": "top layer", "average": "average of the layers"}
    return named.get(str(layers), f"layer {layers}")


def text_lines(
    paths: list[Path] | None,
    given: list[str] | None,
    report: ReadReport,
    *,
    text_field: str | None,
) -> Iterator[TextLine]:
    """Return the lines of TEXT, or those of ``--text``."""
    if bool(paths) == bool(given):
        raise InputError(
            "Give either text files (TEXT; - is standard input) or `--text STRING`, "
            f"got {'both' if paths else 'neither'}."
        )
    if paths:
        return read_text_lines(find_files(paths), report, text_field=text_field)
    for text in given or ():
        check_text(text, where="--text")
    lines = [line for text in given or () for line in text.split("\n")]
    report.lines = len(lines)
    return (TextLine(None, number, line) for number, line in enumerate(lines, 1))
