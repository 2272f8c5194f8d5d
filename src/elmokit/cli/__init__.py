"""The `elmokit` command: one file per subcommand, loaded only when that subcommand is asked for.

`COMMANDS` is the table that `elmokit --help` prints. Command `name` is the function `name` of the
module `elmokit.cli.commands.name`; heavy imports (torch above all) happen inside that function.

Exit codes: 0, 2 for wrong input, 1 for everything else; 130 after Ctrl-C and 143 after SIGTERM, as
a shell counts them. Errors are one message on stderr; `--debug` adds the traceback.
"""

import sys
from collections.abc import Callable, Iterator, MutableMapping
from importlib import import_module
from signal import SIGINT
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from elmokit.cli.options import DebugOption
from elmokit.cli.output import configure_logging, is_user_error, print_error
from elmokit.tasks.registry import TASKS

COMMANDS: dict[str, str] = {
    "demo": "Pre-train a toy model on packaged text and look at its neighbors; no network.",
    "vocab": "Count words and write the target vocabulary; --check examines one.",
    "pretrain": "Raw text to model: tokenizer, vocabulary, shards, training, validation.",
    "finetune": "Continue a model on text of a domain; perplexity before and after.",
    "perplexity": "Forward, backward and mean perplexity of a model on a text.",
    "vectors": "Train static word vectors on a corpus, to compare a model with.",
    "embed": "Write contextual vectors of a text to HDF5, Parquet or NPZ.",
    "train": f"Train a task model ({', '.join(TASKS)}) on a biLM: "
    "frozen, unless train.finetune_bilm=true.",
    "evaluate": "Score a trained task model on a file with gold.",
    "predict": "What a trained task model says of raw text.",
    "experiment": "A table or figure of the paper, scaled down: table1 … table6, figure1, figure2.",
    "neighbors": "Which occurrences of a word a model takes to be alike.",
    "probe": "What each layer knows by itself: pos, wsd, neighbors, wic.",
    "weights": "The layer weights that task models learned, as a table or a heat map.",
    "bench": "Measure embedding on this machine: tokens/s, what limits it, hours for a text.",
    "convert": "Original options.json + HDF5 to a model directory, or back.",
}


class _LazyCommands(MutableMapping[str, Any]):
    """Command name -> command; the module is imported at the first look-up."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        if name not in self._loaded:
            self._loaded[name] = _build(
                getattr(import_module(f"elmokit.cli.commands.{name}"), name)
            )
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(TyperGroup):
    """Imports a command's module on demand and reports every error in one place."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _LazyCommands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the pipeline; imports nothing."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the table of commands for `--help`; imports nothing."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand; turn an exception into a message and an exit code."""
        configure_logging()
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, typer.TyperException, BrokenPipeError):
            raise
        except KeyboardInterrupt as error:
            print_error(error, debug=ctx.meta["debug"])
            raise typer.Exit(128 + getattr(error, "signal_number", SIGINT)) from error
        except Exception as error:
            print_error(error, debug=ctx.meta["debug"])
            raise typer.Exit(2 if is_user_error(error) else 1) from error


def _only_debug(*, debug: DebugOption = False) -> None:
    """Holds the option that is added to every command."""


def _build(function: Callable[..., Any]) -> Any:
    """Turn a command function into a command that also knows `--debug`."""
    command, debug = (_as_command(f) for f in (function, _only_debug))
    known = {parameter.name for parameter in command.params}
    command.params.extend(p for p in debug.params if p.name not in known)
    return command


def _as_command(function: Callable[..., Any]) -> Any:
    single = typer.Typer(rich_markup_mode=None, add_completion=False)
    single.command()(function)
    return typer.main.get_command(single)


app = typer.Typer(
    name="elmokit",
    cls=_Group,
    help="Train ELMo on your own text, or load anyone's ELMo, and use it anywhere.",
    epilog="`elmokit COMMAND --help` shows the options of a command.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(value: bool) -> bool:
    if value:
        from elmokit import __version__

        typer.echo(f"elmokit {__version__}")
        raise typer.Exit
    return value


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
    debug: DebugOption = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the `elmokit` command and of `python -m elmokit`."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # never die on a character that the terminal cannot show
            reconfigure(errors="backslashreplace")
    app(prog_name="elmokit")
