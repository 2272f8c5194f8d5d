import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.experiments.runs import (
    ARRAYS,
    COUNTS_FILE,
    DIVERGED_FILE,
    RESULT_FILE,
    FileScore,
    RunStore,
    provenance,
)
from elmokit.files.json_files import read_json, write_json
from elmokit.probes.layer_weights import MixWeights

from ...builders.experiment_runs import planned, result


def test_a_result_comes_back_as_it_was(tmp_path):
    store, run = RunStore(tmp_path / "runs"), planned()
    assert store.read(run) is None
    weights = [MixWeights(position="input", weights=(0.2, 0.5, 0.3), gamma=1.5)]
    given = result(
        61.25, right=[1, 0, 1], units=[0, 0, 1], epochs=[40.0, 61.25], weights=weights
    )  # fmt: skip
    store.write(run, given)
    found = store.read(run)
    assert store.is_settled(run)
    assert without_arrays(found) == without_arrays(given)
    assert np.array_equal(found.counts, given.counts)
    assert found.sampling_units.tolist() == [0, 0, 1]


def without_arrays(score):
    return {name: value for name, value in vars(score).items() if name not in ARRAYS}


def test_the_score_of_a_test_file_is_kept_with_the_run(tmp_path):
    store, run = RunStore(tmp_path), planned()
    store.write(run, result(50.0, right=[1, 0]))
    score = FileScore(
        metric="accuracy", value=75.0, details={"x": 1.0}, counts=np.ones((4, 2)),
        sampling_units=np.array([0, 0, 1, 1]),
    )  # fmt: skip
    assert store.read_test(run, "abc") is None
    store.write_test(run, "abc", score)
    found = store.read_test(run, "abc")
    assert without_arrays(found) == without_arrays(score)
    assert found.counts.shape == (4, 2)
    assert found.sampling_units.tolist() == [0, 0, 1, 1]
    assert store.read_test(run, "another file") is None
    assert store.read(run).value == 50.0


def test_the_best_score_on_the_held_out_part_and_where_it_came():
    assert result(epochs=[3.0, 9.0, 7.0], best_epoch=2).held_out == 9.0
    assert not result(epochs=[3.0, 9.0, 7.0], best_epoch=2).ended_at_its_best
    assert result(epochs=[3.0, 9.0], best_epoch=2).ended_at_its_best
    assert not result().ended_at_its_best


def test_what_is_half_written_is_not_there(tmp_path, monkeypatch):
    store, run = RunStore(tmp_path), planned()

    def fail(*arguments, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="No space left"):
        store.write(run, result(right=[1]))
    assert not store.is_settled(run)


@pytest.mark.parametrize("name", [RESULT_FILE, COUNTS_FILE])
def test_damage_is_told_with_its_place(tmp_path, name):
    store, run = RunStore(tmp_path), planned()
    store.write(run, result(right=[1]))
    (tmp_path / run.id / name).write_text("{", encoding="utf-8")
    with pytest.raises(FormatError, match=f"/{run.id}"):
        store.read(run)


def test_a_result_without_its_epochs_is_read(tmp_path):
    store, run = RunStore(tmp_path), planned()
    store.write(run, result(2.0, right=[1], epochs=[2.0]))
    path = tmp_path / run.id / RESULT_FILE
    table = read_json(path, advice="")
    del table["result"]["epochs"]
    write_json(path, table)
    found = store.read(run)
    assert (found.value, found.epochs) == (2.0, ())


def test_a_directory_without_its_result_is_replaced(tmp_path):
    store, run = RunStore(tmp_path), planned()
    store.write(run, result(1.0))
    (store.run_dir(run) / RESULT_FILE).unlink()
    store.write(run, result(2.0))
    assert store.read(run).value == 2.0


def test_a_divergence_replaces_the_training(tmp_path):
    store, run = RunStore(tmp_path), planned()
    assert (store.divergence(run), store.is_settled(run)) == (None, False)
    store.run_dir(run).mkdir()
    (store.run_dir(run) / "model.safetensors").touch()
    store.write_divergence(run, "The loss is not finite.")
    assert store.divergence(run) == "diverged: The loss is not finite."
    assert store.is_settled(run)
    assert [path.name for path in store.run_dir(run).iterdir()] == [DIVERGED_FILE]
    (store.run_dir(run) / DIVERGED_FILE).write_text("{", encoding="utf-8")
    with pytest.raises(FormatError, match=rf"/{run.id}/{DIVERGED_FILE}: .*JSON"):
        store.divergence(run)


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_what_made_a_result_is_told(device):
    made = provenance(device)
    assert "thread" in made["hardware"]
    assert "elmokit 0" in made["versions"]
