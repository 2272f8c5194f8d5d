import re

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.experiments.runs.store import (
    COUNTS_FILE,
    DIVERGED_ENDING,
    RESULT_FILE,
    RunStore,
)
from elmokit.files.json_files import read_json, write_json
from elmokit.probes.layer_weights import MixWeights

from ....builders.experiment_runs import planned, result


def test_a_result_comes_back_as_it_was(tmp_path):
    store, run = RunStore(tmp_path / "runs"), planned()
    assert store.read(run) is None
    weights = [MixWeights(position="input", weights=(0.2, 0.5, 0.3), gamma=1.5)]
    given = result(61.25, right=[1, 0, 1], epochs=[40.0, 61.25], weights=weights)
    store.write(run, given)
    found = store.read(run)
    assert run in store
    assert np.array_equal(found.counts, given.counts)
    assert {**vars(found), "counts": 0} == {**vars(given), "counts": 0}


def test_what_is_half_written_is_not_there(tmp_path, monkeypatch):
    store, run = RunStore(tmp_path), planned()

    def fail(*arguments, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="No space left"):
        store.write(run, result(right=[1]))
    assert run not in store
    assert list(tmp_path.iterdir()) == []


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


def test_a_result_that_is_there_already_stays(tmp_path, monkeypatch):
    first, second, run = RunStore(tmp_path), RunStore(tmp_path), planned()
    savez = np.savez_compressed

    def while_another_process_writes(*arguments, **more):
        monkeypatch.setattr(np, "savez_compressed", savez)
        second.write(run, result(2.0))
        savez(*arguments, **more)

    monkeypatch.setattr(np, "savez_compressed", while_another_process_writes)
    first.write(run, result(1.0))
    assert first.read(run).value == 2.0
    first.write(run, result(3.0))
    assert first.read(run).value == 2.0
    assert [path.name for path in tmp_path.iterdir()] == [run.id]


def test_a_directory_without_its_result_is_replaced(tmp_path):
    store, run = RunStore(tmp_path), planned()
    store.write(run, result(1.0))
    (store.path(run) / RESULT_FILE).unlink()
    store.write(run, result(2.0))
    assert store.read(run).value == 2.0


def test_a_divergence_is_kept_until_there_is_a_result(tmp_path):
    store, run = RunStore(tmp_path), planned()
    assert (store.divergence(run), store.is_settled(run)) == (None, False)
    store.write_divergence(run, "The loss is not finite.")
    assert store.divergence(run) == "diverged: The loss is not finite."
    assert store.is_settled(run)
    assert run not in store
    (tmp_path / f"{run.id}{DIVERGED_ENDING}").write_text("{", encoding="utf-8")
    with pytest.raises(FormatError, match=rf"/{run.id}{re.escape(DIVERGED_ENDING)}: .*JSON"):
        store.divergence(run)
    store.write(run, result())
    assert store.divergence(run) is None
