"""Outcomes of runs on disk."""

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.experiments.runs import (
    RESULT_FILE,
    RunResult,
    read_outcome,
    read_score,
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
