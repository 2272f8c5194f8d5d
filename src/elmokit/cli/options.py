"""Options shared by several commands: a flag means the same everywhere."""

import operator
import re
from collections.abc import Iterator, Mapping
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.cli.output import configure_logging
from elmokit.config import from_dict
from elmokit.corpus.readers import ReadReport, TextLine, read_text_lines
from elmokit.errors import InputError, as_input_error
from elmokit.field_checks import SEEDS
from elmokit.files.sources import find_files
from elmokit.tasks.formats.reading import Columns
from elmokit.tasks.registry import TASKS
from elmokit.text.given_sentences import check_text
from elmokit.text.special_words import watched
from elmokit.text.tokenizers.registry import describe_tokenizers
from elmokit.training.pretraining.presets import preset_names
from elmokit.weights.locate import TASK_RUNS


def _set_debug(ctx: Any, value: bool) -> bool:  # typer passes a base class of its Context
    ctx.meta["debug"] = value or ctx.meta.get("debug", False)
    configure_logging(debug=ctx.meta["debug"])
    return value


def file_option(what: str, metavar: str = "FILE") -> Any:
    """Return an option that takes a path."""
    return typer.Option(metavar=metavar, help=what)


def seed_option(what: str) -> Any:
    """Return an option that takes a random seed; ``what`` says of what."""
    low, high = SEEDS

    def check(seed: int | None) -> int | None:
        if seed is not None and not low <= seed <= high:
            raise typer.BadParameter(f"a seed must be from {low} to {high:,}, got {seed}.")
        return seed

    return typer.Option(
        metavar="N", help=f"Random seed, {low} to {high:,}, {what}.", callback=check
    )


DebugOption = Annotated[
    bool,
    typer.Option(
        "--debug", help="Log details, such as the kernels in use, and the traceback of an error.",
        is_eager=True, expose_value=False, callback=_set_debug,
    ),
]  # fmt: skip
"""Added to every command."""
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace existing output.")]

# --- models and devices

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
OtherTokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer", help=f"Tokenizer, instead of the model's: {describe_tokenizers()}."
    ),
]
ScoringBatchOption = Annotated[
    int,
    typer.Option("--batch-size", help="Sentences per batch; does not affect the result.", min=1),
]
StartStateOption = Annotated[
    str,
    typer.Option(
        "--state", help="LSTM state before each sentence: warm (as in training) or reset."
    ),
]
ScoringPrecisionOption = Annotated[
    str,
    typer.Option(
        "--precision",
        help="fp32, bf16, or auto: bf16 where the processor is faster in it, which changes the "
        "figures by less than 0.1 %.",
    ),
]
LayersOption = Annotated[
    str, typer.Option(help="all, top, average, or a layer number (0 is the token layer).")
]
OneLayerOption = Annotated[
    str, typer.Option("--layers", help="top, average, or a layer number (0 is the token layer).")
]
VectorsOption = Annotated[
    Path | None, file_option("Static word vectors (word2vec, GloVe, fastText).")
]
DeviceOption = Annotated[str, typer.Option(help="Device: auto, cpu or cuda.")]
PrecisionOption = Annotated[str, typer.Option(help="Numeric precision: fp32, bf16 or int8.")]
WorkersOption = Annotated[
    int,
    typer.Option(help="Processes that split the text into words; no effect on the result.", min=1),
]
EngineOption = Annotated[
    str,
    typer.Option(help="Where workers run: local (this machine) or ray (a Ray cluster)."),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="With --engine ray: the cluster, such as auto or ray://HOST:10001; default: start "
        "one on this machine.",
    ),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        help="Number of CPU threads; default: one per core that other programs leave free.", min=1
    ),
]

# --- text

CORPUS_HELP = (
    "Files (.txt, .gz, .xz, .bz2, .zst, .jsonl, .csv, .tsv, .parquet, .tar, .zip) or folders of "
    "raw text, a sentence or a paragraph per line (- is standard input)"
)
TextFieldOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Field of .jsonl, or column of .parquet, .csv and .tsv, that holds the text; a number "
        "from 1 for tables without a header. Default: text; of .csv and .tsv the whole rows.",
    ),
]
CorpusArgument = Annotated[list[Path], typer.Argument(metavar="CORPUS", help=f"{CORPUS_HELP}.")]
TextArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="TEXT",
        help="Raw text files, a sentence or a paragraph per line; - is standard input.",
    ),
]
OptionalTextArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="TEXT",
        help="Raw text files, a sentence or a paragraph per line; - is standard input.",
        show_default=False,
    ),
]
GivenTextOption = Annotated[
    list[str] | None,
    typer.Option("--text", "-t", metavar="STRING", help="A text instead of TEXT; repeatable."),
]
TOKENIZERS = describe_tokenizers()


def uses_ray(engine: str, address: str | None) -> bool:
    """Return whether ``--engine`` is ray; raise `InputError` for what is no engine."""
    if engine not in ("local", "ray"):
        raise InputError(f"--engine must be local or ray, got {engine!r}.")
    if address is not None and engine != "ray":
        raise InputError("--address is for a Ray cluster: add --engine ray.")
    return engine == "ray"


# --- training runs

PRESETS = ", ".join(preset_names())
RunDirOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Directory for the run and its model.")
]
RecipeOption = Annotated[
    Path | None, typer.Option(metavar="FILE.toml", help="Settings; override preset and defaults.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="a.b=c", help="Override a setting; repeatable."),
]
ValidOption = Annotated[
    list[Path] | None, file_option("Validation text; default: a held-out part of CORPUS.")
]
MinutesOption = Annotated[float | None, typer.Option(help="Stop after this many minutes.")]
EpochsOption = Annotated[
    float | None,
    typer.Option(help="Stop after this many passes over CORPUS, counted in predicted words."),
]
TokensOption = Annotated[int | None, typer.Option(help="Stop after this many predicted words.")]
ResumeRunOption = Annotated[
    bool, typer.Option("--resume", help="Continue from the last checkpoint of the run.")
]

# --- tasks

TaskArgument = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="; ".join(f"{name}: {entry.summary}" for name, entry in TASKS.items()) + ".",
    ),
]
_PACKAGED_RUNS = ", ".join(TASK_RUNS.names())
TaskRunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help=f"Directory written by `elmokit train`, or a packaged tagger: {_PACKAGED_RUNS}.",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="word=N,tag=N",
        help="Columns of words and tags in files for ner, from 1; default: the first and the last, "
        "or those of the run.",
    ),
]
LayerCacheOption = Annotated[
    Path | None, file_option("Cache for biLM layers; default: the user cache folder.", "DIR")
]


def as_settings(values: Mapping[str, str | None]) -> list[str]:
    """Return ``--set`` of the options that are given."""
    return [
        f"{setting}={dumps(value, ensure_ascii=False)}"
        for setting, value in values.items()
        if value is not None
    ]


def columns_settings(text: str | None) -> list[str]:
    """Return ``--columns word=N,tag=N`` as settings of a task run."""
    return [] if text is None else [f"columns.{part}" for part in _column_parts(text)]


def columns_of(text: str | None) -> Columns | None:
    """Return what ``--columns`` says; raise `InputError` if it is not ``word=N,tag=N``."""
    return None if text is None else from_dict(Columns, {}, overrides=_column_parts(text))


def _column_parts(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"(word|tag)=[1-9][0-9]{0,3}", part) for part in parts):
        raise InputError(
            "--columns takes the columns of words and tags, counted from 1, such as word=2,tag=3, "
            f"got {text!r:.60}."
        )
    return parts


def check_agreement(config: object, given: Mapping[str, tuple[str, object]]) -> None:
    """Check that no ``--set`` replaced what another option says.

    Args:
        config: The resolved configuration.
        given: By option or argument: the setting that it means, its value (None: not given).

    Raises:
        InputError: if the configuration has another value.
    """
    for option, (setting, value) in given.items():
        resolved = operator.attrgetter(setting)(config)
        if value is not None and resolved != value:
            raise InputError(
                f"{option} {value} contradicts --set {setting}={resolved}. Give one of them."
            )


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
    """Return the lines of TEXT, or those of ``--text``.

    Raises:
        InputError: for both or neither, and for strings that are no text.
    """
    if bool(paths) == bool(given):
        raise InputError(
            "Give either text files (TEXT; - is standard input) or `--text STRING`, "
            f"got {'both' if paths else 'neither'}."
        )
    if paths:
        try:
            return read_text_lines(find_files(paths), report, text_field=text_field)
        except FileNotFoundError as error:
            if any(" " in str(path) for path in paths):
                error.add_note("If this is the text itself, give it with --text.")
            raise
    with as_input_error():
        for text in given or ():
            check_text(text, where="--text")
    lines = [line for text in given or () for line in text.split("\n")]
    report.lines = len(lines)
    return (TextLine(None, number, line) for number, line in enumerate(watched(lines), 1))
