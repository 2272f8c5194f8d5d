"""Options that several commands take: the same flag has the same meaning everywhere."""

from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.tasks.registry import TASKS
from elmokit.text.tokenizers.registry import describe_tokenizers
from elmokit.training.pretraining.presets import preset_names


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
"""Added to every command; the group's error report reads it."""
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace the output if it exists.")
]

# --- models and where they run

_MODEL_HELP = "Model directory, or the name of a packaged model: en, ko."
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help=_MODEL_HELP)]
ModelOption = Annotated[
    str | None, typer.Option("--model", "-m", metavar="MODEL", help=_MODEL_HELP)
]
OtherTokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        help=f"Use this tokenizer instead of the model's own: {describe_tokenizers()}.",
    ),
]
LayersOption = Annotated[
    str, typer.Option(help="all, top, average, or the number of a layer (0: the token layer).")
]
VectorsOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Static word vectors (word2vec, GloVe, fastText)."),
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
PrecisionOption = Annotated[str, typer.Option(help="Arithmetic: fp32, bf16 or int8.")]
ThreadsOption = Annotated[
    int | None, typer.Option(help="CPU threads; default: PyTorch's choice.", min=1)
]

# --- text

CORPUS_HELP = "Raw text: .txt, .gz, .xz, .zst, .jsonl, .parquet, or a folder"
CorpusArgument = Annotated[list[Path], typer.Argument(metavar="CORPUS", help=f"{CORPUS_HELP}.")]
TextArgument = Annotated[
    list[Path], typer.Argument(metavar="TEXT", help="One or more files of raw text.")
]
TOKENIZERS = describe_tokenizers()

# --- training runs

PRESETS = ", ".join(preset_names())
RunDirOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Run and model directory.")
]
RecipeOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE.toml", help="Settings; override the preset or the defaults."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="a.b=c", help="Override one setting; may be repeated."),
]
ValidOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Validation text; default: part of CORPUS is held out."),
]
MinutesOption = Annotated[float | None, typer.Option(help="Stop after this many minutes.")]
EpochsOption = Annotated[
    float | None, typer.Option(help="Stop after this many passes over the corpus.")
]
TokensOption = Annotated[int | None, typer.Option(help="Stop after this many predicted words.")]
ResumeRunOption = Annotated[
    bool, typer.Option("--resume", help="Continue from the last checkpoint in DIR.")
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
    Path, typer.Argument(metavar="RUN", help="Directory written by `elmokit train`.")
]
LayerCacheOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Cache of biLM layers; default: the user's cache folder."),
]


def layers_of(text: str) -> str | int:
    """Return what ``--layers`` means: a number, or a name that the library checks."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def use_threads(threads: int | None) -> None:
    """Compute with this many CPU threads; none: PyTorch's choice."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
