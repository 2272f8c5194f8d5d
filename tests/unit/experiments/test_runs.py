"""Outcomes of runs on disk."""

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.experiments.runs import (
    DIVERGED_FILE,
    RESULT_FILE,
    RunResult,
    provenance,
    read_outcome,
    read_score,
    write_divergence,
    write_score,
)
from elmokit.probes.layer_weights import MixWeights

from ...builders.experiment_runs import result


def test_a_result_comes_back_as_it_was(tmp_path):
    path = tmp_path / "run" / RESULT_FILE
    assert read_outcome(tmp_path / "run") is None
    weights = [MixWeights(position="input", weights=(0.2, 0.5, 0.3), gamma=1.5)]
    stored = result(
        61.25, right=[1, 0, 1], units=[0, 0, 1], epochs=[40.0, 61.25], weights=weights
    )  # fmt: skip
    write_score(path, stored, run={"seed": 0})
    assert read_outcome(tmp_path / "run") == read_score(path, RunResult) == stored
    assert stored.counts_by_unit.tolist() == [[1, 2], [1, 1]]
    assert np.array_equal(result(right=[1, 0]).counts_by_unit, [[1, 1], [0, 1]])
    path.write_text("{", encoding="utf-8")
    with pytest.raises(FormatError, match=RESULT_FILE):
        read_outcome(tmp_path / "run")


def test_the_best_score_on_the_held_out_part_and_where_it_came():
    assert result(epochs=[3.0, 9.0, 7.0], best_epoch=2).held_out == 9.0
    assert not result(epochs=[3.0, 9.0, 7.0], best_epoch=2).ended_at_its_best
    assert result(epochs=[3.0, 9.0], best_epoch=2).ended_at_its_best
    assert not result().ended_at_its_best


def test_a_divergence_replaces_the_training(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/model.safetensors").touch()
    write_divergence(tmp_path / "run", "The loss is not finite.")
    assert read_outcome(tmp_path / "run") == "diverged: The loss is not finite."
    assert [path.name for path in (tmp_path / "run").iterdir()] == [DIVERGED_FILE]


def test_what_made_a_result_is_told():
    made = provenance("cpu")
    assert "thread" in made["hardware"]
    assert "elmokit 0" in made["versions"]
