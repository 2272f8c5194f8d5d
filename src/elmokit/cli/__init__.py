"""The `elmokit` command: one file per subcommand, imported when that subcommand is used.

A command is the function of its name, with `_` for `-`, in the module of `elmokit.cli.commands`
that `COMMANDS` names; the first line of its docstring is its entry in `elmokit --help`. Exit codes:
0 for success, 2 for invalid input, 1 for any other error, 130 after Ctrl-C, 143 after SIGTERM, 129
after SIGHUP and 141 if nobody reads the results to their end.
"""

import inspect
import re
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from signal import SIGINT
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from elmokit.cli import options
from elmokit.cli.output import (
    BROKEN_PIPE,
    Result,
    drop_results,
    emit_json,
    flush_results,
    is_main_process,
    is_user_error,
    open_standard_streams,
    print_error,
)
from elmokit.cli.threads import prepare_threads
from elmokit.errors import needs_torch

COMMANDS = {
    "demo": "demo", "vocab": "vocab", "tokenize": "trace", "pretrain": "pretrain",
    "finetune": "finetune", "perplexity": "surprisal", "surprisal": "surprisal", "pairs": "pairs",
    "reading": "reading", "predict-word": "trace", "change": "change", "vectors": "vectors",
    "distil": "vectors", "embed": "embed", "merge": "embed", "train": "train",
    "evaluate": "train", "predict": "train", "experiment": "experiment", "neighbors": "probe",
    "probe": "probe", "weights": "probe", "trace": "trace", "explore": "serve", "serve": "serve",
    "plot": "plot", "track": "plot", "bench": "embed", "convert": "convert",
    "info": "info", "cache": "info",
}  # fmt: skip
"""The module of each command, in pipeline order."""
_TEXT_OPTIONS = ("--text", "-t", "--sentence")
"""Their values may be empty."""
_MAIN_PROCESS_SECONDS = 10.0
"""How long another rank waits for rank 0 to report its error first."""


class _Command(TyperCommand):
    """Refuses empty values other than texts, and prints the result."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an empty value, which a path would take for the working directory."""
        for number, value in enumerate(args):
            before = args[number - 1] if number else ""
            is_text = (value.removesuffix("=") or before) in _TEXT_OPTIONS
            # whose sentence comes after the model
            is_text |= ctx.info_name == "predict-word" and before[:1] not in ("", "-")
            if not is_text and (value == "" or re.fullmatch(r"--[\w-]+=", value)):
                name = value or before
                raise typer.BadParameter(
                    f"There is an empty value after {name or ctx.info_name!r}. Is a shell variable "
                    "unset?",
                    ctx=ctx,
                )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> None:
        """Run the command and print its result."""
        result = super().invoke(ctx)
        if not isinstance(result, Result):
            return
        if ctx.params.get("json", ctx.meta.get("json")):
            emit_json(result.data)
        else:
            for line in result.lines:
                typer.echo(line)
            if result.note:
                typer.echo(result.note, err=True)
        if result.exit_code:
            raise typer.Exit(result.exit_code)


class _Group(TyperGroup):
    """Imports commands on demand and reports all errors."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = dict.fromkeys(COMMANDS)  # the names, for help and suggestions

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the module of a command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"elmokit.cli.commands.{COMMANDS[cmd_name]}")
        return _build(getattr(module, cmd_name.replace("-", "_")))

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand; turn exceptions into a message and an exit code."""
        try:
            with needs_torch():
                return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError as error:  # nobody reads on
            drop_results()
            raise typer.Exit(BROKEN_PIPE) from error
        except KeyboardInterrupt as error:
            print_error(error, debug=ctx.meta["debug"])
            raise typer.Exit(128 + getattr(error, "signal_number", SIGINT)) from error
        except Exception as error:
            if not is_main_process():
                # `torchrun` ends this process once rank 0 has told its error, which is the cause
                # or the same one; if rank 0 has none, this process tells its own
                time.sleep(_MAIN_PROCESS_SECONDS)
            if isinstance(error, typer.BadParameter):
                error.message = error.message.removeprefix("Value error, ")  # of pydantic
            if isinstance(error, typer.TyperException):
                raise
            print_error(error, debug=ctx.meta["debug"])
            raise typer.Exit(2 if is_user_error(error) else 1) from error


def _build(function: Callable[..., Any]) -> Any:
    """Turn a function into a command with `--json` and `--debug`.

    What an option does stands in the ``Args:`` of the docstring, or in `elmokit.cli.options` if it
    is the same in several commands. A type or a default says the rest, or an ``Annotated`` type.
    """
    text, _, arguments = inspect.cleandoc(function.__doc__ or "").partition("\n\nArgs:\n")
    entries = re.findall(r"^    (\w+): (.+(?:\n {8}.+)*)", arguments, re.MULTILINE)
    helps = {name: re.sub(r"\s+", " ", entry) for name, entry in entries}
    hints = get_type_hints(function)
    command, shared = (_as_command(f, text) for f in (function, _shared_by_all))
    own = {parameter.name for parameter in command.params}
    command.params.extend(p for p in shared.params if p.name not in own)
    for parameter in command.params:
        own_help = helps.get(parameter.name, parameter.help)
        parameter.help = own_help or options.SHARED_HELP.get(parameter.name)
        if parameter.param_type_name == "option" and _holds_path(hints.get(parameter.name)):
            parameter.metavar = parameter.metavar or "FILE"
        if parameter.default is False:  # a flag that is not set needs no negation
            parameter.secondary_opts = []
    return command


def _holds_path(hint: Any) -> bool:
    return hint is Path or any(map(_holds_path, get_args(hint)))


def _shared_by_all(*, json: options.JsonOption = False, debug: options.DebugOption = False) -> None:
    """Declare the options that every command gets; one that prints its own JSON has its own."""


def _as_command(function: Callable[..., Any], text: str) -> Any:
    single = typer.Typer(rich_markup_mode=None, add_completion=False)
    # in the list of commands, the first line stands whole
    single.command(cls=_Command, help=text, short_help=text.partition("\n")[0])(function)
    return typer.main.get_command(single)


app = typer.Typer(
    name="elmokit",
    cls=_Group,
    help="Train ELMo on your own text or load an existing ELMo, and use it on the machine you "
    "have.",
    epilog="Texts are UTF-8, with a sentence or a paragraph per line; - is standard input. "
    "`elmokit COMMAND --help` shows the options of a command.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(value: bool) -> bool:
    if value:
        from elmokit.version import __version__

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
    debug: options.DebugOption = False,
) -> None:
    pass


def main() -> None:
    """Run a command; `elmokit.__main__` is the entry point."""
    open_standard_streams()
    prepare_threads()
    try:
        app(prog_name="elmokit")
    finally:
        flush_results()  # here, where a failure still changes the exit code
