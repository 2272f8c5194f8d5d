"""`elmokit experiment`: the command that a report names."""

import re
from dataclasses import replace

import pytest

from elmokit.cli.commands.experiment import _command, _names_of, _Shown
from elmokit.errors import InputError
from elmokit.experiments.run_experiment import Advance

from ....builders.experiment_runs import planned, result


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


@pytest.mark.parametrize(
    ("with_rate", "metric", "expected"),
    [
        (False, "accuracy", r"elmo, seed 0: accuracy 61\.50 in 40 s$"),
        (True, "accuracy", r"elmo, seed 0, learning rate 0\.002: accuracy 61\.50 in"),
        (False, "", r"elmo, seed 0: done in 40 s"),  # examples have no score
    ],
)
def test_a_finished_run_is_shown_with_its_score(with_rate, metric, expected, capsys):
    run = planned("elmo", config={"train": {"learning_rate": 0.002}})
    made = replace(result(61.5, wall_seconds=40.0), metric=metric)
    shown = _Shown(lambda *_, **__: None, with_rate=with_rate)
    shown.advance(Advance(1, 8, run, made))
    assert re.search(expected, capsys.readouterr().err.strip())


def test_tasks_without_a_name_are_refused_and_do_not_mean_all():
    assert _names_of("ner, nli,") == ("ner", "nli")
    assert _names_of(None) == ()
    with pytest.raises(InputError, match=r"--tasks .*' , '"):
        _names_of(" , ")
