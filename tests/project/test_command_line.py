"""`elmokit --help` is instant, complete and true."""

import os
import pkgutil

import typer

from elmokit.cli import COMMANDS, app, commands
from elmokit.errors import SEEDS

from ..builders.command_line import run_python


def test_help_names_every_command_and_is_quick():
    """The promise is 0.3 s; the bound, in the processor's seconds, leaves room for an old one."""
    modules = {module.name for module in pkgutil.iter_modules(commands.__path__)}
    assert modules == set(COMMANDS.values())
    seconds = []
    for _ in range(2):
        before = os.times()
        shown = run_python("from elmokit.cli import main; main()", "--help")
        after = os.times()
        seconds.append(sum(after[2:4]) - sum(before[2:4]))  # of child processes
    assert min(seconds) < 1.0
    table = shown.stdout.split("Commands:\n")[1].split("\n\n")[0]
    listed = [row.split()[0] for row in table.splitlines() if row[2] != " "]
    assert listed == list(COMMANDS)


def test_help_does_not_import_torch():
    """Of the whole first, then of each command, all in one process."""
    code = f"""
import contextlib, io, sys
from elmokit.cli import main
for arguments in [[], *([name] for name in {list(COMMANDS)!r})]:
    sys.argv = ["elmokit", *arguments, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        try:
            main()
        except SystemExit as end:
            assert end.code == 0, end.code
    assert "--help" in shown.getvalue(), arguments
    heavy = {{"torch", "numpy", "h5py", "pyarrow", "rich", "kiwipiepy"}} & set(sys.modules)
    assert not heavy, (arguments, heavy)
print("checked", *arguments)
"""
    result = run_python(code)
    assert result.stdout == f"checked {list(COMMANDS)[-1]}\n", result.stderr


def test_every_command_knows_debug_and_json_and_explains_its_options():
    group = typer.main.get_command(app)
    seeds = {}
    for name in COMMANDS:
        command = group.get_command(None, name)
        options = {option for parameter in command.params for option in parameter.opts}
        assert {"--debug", "--json"} <= options
        assert command.help
        for parameter in command.params:
            assert parameter.param_type_name != "option" or parameter.help, (name, parameter.name)
            if parameter.name == "seed":
                seeds[name] = parameter
    low, high = SEEDS
    for option in seeds.values():  # every seed has the same range
        assert f"{low} to {high:,}" in option.help
