import errno
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


def test_kept_layers_are_those_of_the_embedder(embedder, tmp_path):
    kept = keep_layers(embedder, SENTENCES, tmp_path)
    assert len(kept) == 4
    assert (kept.num_layers, kept.dim) == (embedder.num_layers, embedder.dim)
    for index, vectors in enumerate(embedder.embed([list(words) for words in SENTENCES])):
        np.testing.assert_array_equal(kept[index], vectors.transpose(1, 0, 2).astype(np.float16))


def test_they_are_computed_once_for_the_same_words_model_and_policy(embedder, tmp_path):
    calls = []
    for _ in range(2):
        keep_layers(embedder, SENTENCES, tmp_path, on_progress=lambda *done: calls.append(done))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]
    keep_layers(embedder, SENTENCES[:2], tmp_path)
    keep_layers(embedder, SENTENCES, tmp_path, state="carry")
    keep_layers(Embedder.load(toy_model(seed=4)), SENTENCES, tmp_path)
    keep_layers(Embedder.load(toy_model(), precision="bf16"), SENTENCES, tmp_path)
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOENT, errno.EPERM])
def test_kept_layers_are_read_where_their_use_cannot_be_noted(
    code, embedder, tmp_path, monkeypatch
):
    expected = keep_layers(embedder, SENTENCES, tmp_path)

    def refuse(path):
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(layer_cache.os, "utime", refuse)
    kept = keep_layers(embedder, SENTENCES, tmp_path)
    np.testing.assert_array_equal(kept[0], expected[0])


def test_a_run_that_is_stopped_leaves_nothing(embedder, tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep_layers(embedder, SENTENCES, tmp_path, on_progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_two_writers_at_a_time_both_get_whole_layers(embedder, tmp_path):
    second = []

    def meanwhile(done, total):
        if done == 2 and not second:
            second.append(None)
            second[0] = keep_layers(embedder, SENTENCES, tmp_path)

    first = keep_layers(embedder, SENTENCES, tmp_path, on_progress=meanwhile)
    for index in range(len(SENTENCES)):
        np.testing.assert_array_equal(first[index], second[0][index])
    assert len(list(tmp_path.iterdir())) == 1


def test_damaged_layers_are_told_with_their_directory(embedder, tmp_path):
    keep_layers(embedder, SENTENCES, tmp_path)
    (directory,) = tmp_path.iterdir()
    (directory / "starts.npy").write_bytes(b"half")
    with pytest.raises(FormatError, match=f"/{directory.name} "):
        keep_layers(embedder, SENTENCES, tmp_path)


@pytest.mark.parametrize("within", [(), SENTENCES[2:]])
def test_layers_that_another_process_removes_meanwhile_are_computed_again(
    within, embedder, tmp_path, monkeypatch
):
    expected = keep_layers(embedder, SENTENCES[2:], tmp_path)
    (entry,) = tmp_path.iterdir()
    removals = iter([shutil.rmtree])  # once
    monkeypatch.setattr(layer_cache.os, "utime", lambda path: [one(path) for one in removals])
    kept = keep_layers(embedder, SENTENCES[2:], tmp_path, within=within)
    assert entry.exists()
    np.testing.assert_array_equal(kept[0], expected[0])


def test_a_full_disk_is_told(embedder, tmp_path, monkeypatch):
    def no_room(path, num_bytes):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(layer_cache, "reserve", no_room)
    with pytest.raises(OSError, match="No space left"):
        keep_layers(embedder, SENTENCES, tmp_path)
    assert list(tmp_path.iterdir()) == []


class TestLimit:
    def keep(self, embedder, tmp_path, name, when):
        """Keep the layers of a sentence; return their directory, last used at a time."""
        before = set(tmp_path.iterdir())
        keep_layers(embedder, [(name,) * 100], tmp_path)
        (made,) = set(tmp_path.iterdir()) - before or {None}
        if made is not None:
            os.utime(made, (when, when))
        return made

    def test_what_was_not_used_for_longest_goes_first(
        self, embedder, tmp_path, monkeypatch, caplog
    ):
        first, second = (
            self.keep(embedder, tmp_path, name, 1000 + n) for n, name in enumerate("ab")
        )
        size = sum(path.stat().st_size for path in first.iterdir())
        monkeypatch.setenv("ELMOKIT_LAYER_CACHE_GB", str(2.5 * size / 1e9))
        keep_layers(embedder, [("a",) * 100], tmp_path)  # uses the first one again
        (tmp_path / "notes.txt").write_text("not ours")
        with caplog.at_level("INFO"):
            third = self.keep(embedder, tmp_path, "c", 3000)
        assert set(tmp_path.iterdir()) == {first, third, tmp_path / "notes.txt"}
        assert not second.exists()
        assert "ELMOKIT_LAYER_CACHE_GB" in caplog.text

    def test_the_newest_stays_whatever_its_size(self, embedder, tmp_path, monkeypatch):
        monkeypatch.setenv("ELMOKIT_LAYER_CACHE_GB", "0")
        for name in "ab":
            kept = keep_layers(embedder, [(name,) * 100], tmp_path)
        assert kept[0].shape == (100, embedder.num_layers, embedder.dim)
        assert len(list(tmp_path.iterdir())) == 1

    def test_a_wrong_setting_is_told_before_the_work(self, embedder, tmp_path, monkeypatch):
        monkeypatch.setenv("ELMOKIT_LAYER_CACHE_GB", "ten")
        with pytest.raises(InputError, match=r"ELMOKIT_LAYER_CACHE_GB.*'ten'"):
            keep_layers(embedder, SENTENCES, tmp_path)
