"""`elmokit experiment`: the command that a report names."""

import pytest

from elmokit.cli.commands.experiment import _command, _names_of
from elmokit.errors import InputError


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("table1 --tune --minutes 0.01 -o a/table1", "table1 --tune -o a/table1"),
        ("korean --minutes=5 --layer-cache=c --resume --seeds 2", "korean --seeds 2"),
        ("table6 --json --threads 1 --layer-cache c", "table6 --threads 1"),
        ("table6 --debug --set a.b=1", "table6 --set a.b=1"),
        ("table6 --minutes", "table6"),
    ],
)
def test_a_report_names_the_command_without_what_changes_no_result(arguments, expected):
    assert _command(arguments.split()) == f"elmokit {expected}"


def test_tasks_without_a_name_are_refused_and_do_not_mean_all():
    assert _names_of("ner, nli,") == ("ner", "nli")
    assert _names_of(None) == ()
    with pytest.raises(InputError, match=r"--tasks .*' , '"):
        _names_of(" , ")
