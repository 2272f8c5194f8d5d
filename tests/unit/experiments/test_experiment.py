import pytest

from elmokit.errors import InputError
from elmokit.experiments.registry import find_experiment


def test_tasks_are_chosen_in_the_experiments_order():
    experiment = find_experiment("table1")
    assert [one.task for one in experiment.choose_tasks(("nli", "ner"))] == ["ner", "nli"]
    with pytest.raises(InputError, match=r"table1 .*'pos'.*ner, srl, sentiment, nli, qa, coref"):
        experiment.choose_tasks(("pos",))
    with pytest.raises(InputError, match=r"table5 .*'nli'"):
        find_experiment("table5").choose_tasks(("nli",))
