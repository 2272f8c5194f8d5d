"""Settings of the inputs: what is given counts, what is open is the task's own."""

from typing import get_args

import pytest

from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.registry import EmbeddingKind, find_task

from ....builders.task_models import full_inputs

PAPER = {
    "pos": full_inputs(characters=True, dropout=0.0, layer_l2=0.001),
    "ner": full_inputs(characters=True, dropout=0.0, layer_l2=0.1),
    "srl": full_inputs(characters=False, layer_l2=0.001),
    "sentiment": full_inputs(positions="both", characters=False, layer_l2=0.001),
    "nli": full_inputs(
        positions="both", characters=False, dropout=0.0, layer_l2=0.001, layer_norm="token"
    ),
    "qa": full_inputs(positions="both", characters=True, layer_l2=0.0),
}
"""Peters et al. 2018, appendix A and table 3; where dropout is 0, the encoder drops its inputs."""


@pytest.mark.parametrize("name", PAPER)
def test_what_is_open_is_as_in_the_paper(name):
    assert InputSettings().resolved(find_task(name).paper_inputs, with_static=True) == PAPER[name]


@pytest.mark.parametrize(
    ("embeddings", "with_static", "state", "scale"),
    [
        ("elmo", True, "warm", "learned"),
        ("elmo", False, "warm", "given"),
        ("static", True, "reset", "learned"),
        ("static_projected", True, "reset", "learned"),
        ("none", True, "reset", "given"),
    ],
)
def test_what_has_no_effect_does_not_distinguish_runs(embeddings, with_static, state, scale):
    given = InputSettings(embeddings=embeddings, state="warm", static_scale="learned")
    resolved = given.resolved(with_static=with_static)
    assert (resolved.state, resolved.static_scale) == (state, scale)


@pytest.mark.parametrize(
    ("given", "with_static", "expected"),
    [
        ({}, False, False),
        ({"embeddings": "none"}, False, True),
        ({"embeddings": "static"}, True, False),
        ({"positions": "output"}, False, True),
        ({"positions": "output"}, True, False),
        ({"embeddings": "none", "characters": False}, False, False),
    ],
)
def test_characters_are_read_where_nothing_else_would_be(given, with_static, expected):
    paper = find_task("srl").paper_inputs  # without characters
    assert InputSettings(**given).resolved(paper, with_static=with_static).characters == expected


def test_the_guide_has_every_condition(repository_dir):
    guide = (repository_dir / "docs/guides/tasks.md").read_text(encoding="utf-8")
    table = guide.partition("| `--embeddings` |")[2].partition("\n\n")[0]
    assert [name for name in get_args(EmbeddingKind) if f"`{name}`" not in table] == []
