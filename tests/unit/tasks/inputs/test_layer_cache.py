"""Layers that are kept: computed once, whole or not at all, within a limit."""

import os
import shutil

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError, InputError
from elmokit.tasks.inputs import layer_cache
from elmokit.tasks.inputs.layer_cache import keep_layers

from ....builders.task_models import toy_model

SENTENCES = [("I", "sat"), (), ("배", "를", "타고"), ("by",) * 30]


@pytest.fixture(scope="module")
def embedder():
    return Embedder.load(toy_model())


def test_layers_are_computed_once_for_the_same_words_model_and_policy(embedder, tmp_path):
    calls = []
    for _ in range(2):
        kept = keep_layers(embedder, SENTENCES, tmp_path, on_progress=lambda *n: calls.append(n))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert len(kept) == 4
    for index, vectors in enumerate(embedder.embed(map(list, SENTENCES))):
        np.testing.assert_array_equal(kept[index], vectors.transpose(1, 0, 2).astype(np.float16))
    keep_layers(embedder, SENTENCES[:2], tmp_path)
    keep_layers(embedder, SENTENCES, tmp_path, state="carry")
    keep_layers(Embedder.load(toy_model(seed=4)), SENTENCES, tmp_path)
    keep_layers(Embedder.load(toy_model(), precision="bf16"), SENTENCES, tmp_path)
    assert len(list(tmp_path.iterdir())) == 5


def test_damaged_layers_are_told_with_their_directory(embedder, tmp_path):
    keep_layers(embedder, SENTENCES, tmp_path)
    (directory,) = tmp_path.iterdir()
    (directory / "starts.npy").write_bytes(b"half")
    with pytest.raises(FormatError, match=f"/{directory.name}: damaged"):
        keep_layers(embedder, SENTENCES, tmp_path)
    (directory / "layers.npy").unlink()
    with pytest.raises(FormatError, match=rf"/{directory.name} is damaged: .*Remove that"):
        keep_layers(embedder, SENTENCES, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="/file is a file"):
        keep_layers(embedder, SENTENCES, tmp_path / "file")


def test_layers_that_another_process_removes_are_computed_again(embedder, tmp_path, monkeypatch):
    keep_layers(embedder, SENTENCES, tmp_path)
    (entry,) = tmp_path.iterdir()
    utime = os.utime

    def remove(path):
        monkeypatch.setattr(layer_cache.os, "utime", utime)
        shutil.rmtree(path)

    monkeypatch.setattr(layer_cache.os, "utime", remove)
    assert len(keep_layers(embedder, SENTENCES, tmp_path)) == len(SENTENCES)
    assert entry.exists()


def test_what_was_not_used_for_longest_goes_first_and_the_newest_stays(
    embedder, tmp_path, monkeypatch
):
    def keep(name):
        before = set(tmp_path.iterdir())
        keep_layers(embedder, [(name,) * 100], tmp_path)
        return next(iter(set(tmp_path.iterdir()) - before), None)

    first, second = keep("a"), keep("b")
    for entry, time in ((first, 1000), (second, 1001)):
        os.utime(entry, (time, time))
    size = sum(path.stat().st_size for path in first.iterdir())
    monkeypatch.setattr(layer_cache, "LIMIT_BYTES", 2.5 * size)
    assert keep("a") is None  # uses the first one again
    notes = tmp_path / "notes.txt"
    notes.write_text("not ours")
    assert {first, keep("c"), notes} == set(tmp_path.iterdir())
    monkeypatch.setattr(layer_cache, "LIMIT_BYTES", 0)
    assert {keep("d"), notes} == set(tmp_path.iterdir())
