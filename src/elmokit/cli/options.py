"""Options that more than one command takes: the same flag has the same meaning everywhere."""

from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.tasks.registry import TASKS
from elmokit.text.tokenizers.registry import describe_tokenizers


def _remember_debug(ctx: Any, value: bool) -> bool:  # typer passes a base class of its Context
    ctx.meta["debug"] = value or ctx.meta.get("debug", False)
    return value


DebugOption = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Show the traceback of an error.",
        is_eager=True,
        expose_value=False,
        callback=_remember_debug,
    ),
]
"""Every command gets this one by itself; the error report of the group reads it."""
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
]

# --- models and where they run

ModelArgument = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="Model directory, or en or ko: those of the package."),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Model directory, or en or ko: those of the package.",
    ),
]
OtherTokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        help=f"Use this tokenizer instead of the model's own: {describe_tokenizers()}.",
    ),
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
PrecisionOption = Annotated[str, typer.Option(help="Arithmetic: fp32, bf16 or int8.")]
ThreadsOption = Annotated[
    int | None, typer.Option(help="CPU threads; default: PyTorch's choice.", min=1)
]

# --- training runs

RunDirOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Run and model directory.")
]
RecipeOption = Annotated[
    Path | None, typer.Option(metavar="FILE.toml", help="Settings over preset or defaults.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="a.b=c", help="One setting over all of these."),
]
ValidOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Validation text; without it a little is held out."),
]
MinutesOption = Annotated[float | None, typer.Option(help="Stop after this time.")]
EpochsOption = Annotated[
    float | None, typer.Option(help="Stop after so many passes over the corpus.")
]
TokensOption = Annotated[int | None, typer.Option(help="Stop after so many predicted words.")]
ResumeRunOption = Annotated[
    bool, typer.Option("--resume", help="Go on from the last checkpoint in DIR.")
]

# --- tasks

TaskArgument = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="; ".join(f"{name}: {entry.summary}" for name, entry in TASKS.items()) + ".",
    ),
]
TaskRunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="Directory that `elmokit train` made.")
]
LayerCacheOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where layers are kept; default: the user's cache."),
]


def layers_of(text: str) -> str | int:
    """Return what ``--layers`` means: a number, or a name that the library checks."""
    return int(text) if text.removeprefix("-").isdecimal() else text
