"""Settings of the inputs: what is given counts, what is open is the task's own."""

import pytest

from elmokit.config import to_dict
from elmokit.tasks.inputs.settings import InputsConfig, InputSettings
from elmokit.tasks.registry import TASKS

PAPER = {
    "pos": InputSettings(characters=True, dropout=0.0, layer_l2=0.001),
    "ner": InputSettings(characters=True, dropout=0.0, layer_l2=0.1),
    "srl": InputSettings(characters=False, layer_l2=0.001),
    "sentiment": InputSettings(places="both", characters=False, layer_l2=0.001),
    "nli": InputSettings(
        places="both", characters=False, dropout=0.0, layer_l2=0.001, layer_norm="token"
    ),
    "qa": InputSettings(places="both", characters=True, layer_l2=0.0),
}
"""Peters et al. 2018, appendix A and table 3; where dropout is 0, the encoder drops its inputs."""


@pytest.mark.parametrize("name", PAPER)
def test_what_is_open_is_as_in_the_paper(name):
    assert InputsConfig().resolved(TASKS[name].paper_inputs, with_static=True) == PAPER[name]


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_the_places_of_its_paper(name):
    task = TASKS[name]
    assert task.paper_inputs.places in task.places
    assert task.paper_inputs.embeddings == "elmo"


def test_what_is_given_counts():
    given = {
        "embeddings": "top", "places": "output", "characters": False, "dropout": 0.0,
        "layer_l2": 0.0, "layer_norm": "batch",
    }  # fmt: skip
    settings = InputsConfig(**given).resolved(TASKS["nli"].paper_inputs, with_static=False)
    assert to_dict(settings) == given


def test_settings_without_anything_open_stay_as_they_are():
    once = InputsConfig(embeddings="none").resolved(TASKS["srl"].paper_inputs, with_static=False)
    again = InputsConfig(**vars(once)).resolved(TASKS["qa"].paper_inputs, with_static=True)
    assert again == once


@pytest.mark.parametrize(
    ("given", "with_static", "expected"),
    [
        ({}, False, False),
        ({"embeddings": "none"}, False, True),
        ({"embeddings": "static"}, True, False),
        ({"places": "output"}, False, True),
        ({"places": "output"}, True, False),
        ({"embeddings": "none", "characters": False}, False, False),
    ],
)
def test_characters_are_read_where_nothing_else_would_be(given, with_static, expected):
    paper = TASKS["srl"].paper_inputs  # without characters
    assert InputsConfig(**given).resolved(paper, with_static=with_static).characters == expected


@pytest.mark.parametrize("settings", [{"dropout": 1.0}, {"layer_l2": -0.1}])
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        InputsConfig(**settings)


def test_the_guide_has_the_settings_of_every_task(pytestconfig):
    """Rows: task, places (others that the network has), characters, λ, norm, dropout."""
    guide = (pytestconfig.rootpath / "docs/guides/tasks.md").read_text(encoding="utf-8")
    rows = {}
    for line in guide.partition("`inputs.places` |")[2].partition("\n\n")[0].splitlines()[2:]:
        name, *cells = (cell.strip().replace("`", "") for cell in line.strip("|").split("|"))
        rows[name] = cells
    for name, task in TASKS.items():
        paper = task.paper_inputs
        others = ", ".join(place for place in task.places if place != paper.places)
        assert rows[name] == [
            f"{paper.places} ({others})" if others else paper.places,
            str(paper.characters).lower(),
            f"{paper.layer_l2:g}",
            paper.layer_norm,
            f"{paper.dropout:g}",
        ]
