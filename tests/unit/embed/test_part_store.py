import errno
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from elmokit.bilm.bilm import BiLMState
from elmokit.embed.formats.block import Block
from elmokit.embed.part_store import PartStore
from elmokit.errors import FormatError, InputError

SETTINGS = {"precision": "fp32", "layers": "all"}


def block(first, count):
    indices = list(range(first, first + count))
    vectors = [np.full((2, i % 3, 4), i, dtype=np.float16) for i in indices]
    return Block(
        indices, [f"line {i} \ud800" for i in indices], [["w"] * (i % 3) for i in indices], vectors
    )


@pytest.fixture
def store(tmp_path):
    store = PartStore(tmp_path / "out.h5.parts")
    store.start(SETTINGS, output=tmp_path / "out.h5")
    store.add(0, block(0, 3), None)
    store.add(3, block(3, 2), None)
    return store


def test_blocks_come_back_as_they_went_in(store):
    blocks = list(store.blocks())
    assert [b.indices for b in blocks] == [[0, 1, 2], [3, 4]]
    for got, expected in zip(blocks, (block(0, 3), block(3, 2)), strict=True):
        assert (got.texts, got.tokens) == (expected.texts, expected.tokens)
        for a, b in zip(got.vectors, expected.vectors, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    assert list(store.texts())[4] == (4, "line 4 \ud800")
    assert store.num_words() == 0 + 1 + 2 + 0 + 1


def test_state_of_the_last_part_is_kept(tmp_path, store):
    assert store.last_state() is None
    state = BiLMState(torch.rand(1, 2, 1, 4), torch.rand(1, 2, 1, 8))
    store.add(5, block(5, 1), state)
    kept = store.last_state()
    assert torch.equal(kept.hidden, state.hidden)
    assert torch.equal(kept.cell, state.cell)


def test_resuming_drops_what_follows_a_gap(tmp_path, store):
    store.add(7, block(7, 1), None)
    store.resume(SETTINGS, output=tmp_path / "out.h5")
    names = sorted(path.name for path in store.directory.iterdir())
    assert names == [
        "job.json",
        "part-000000000000-000000000003.npz",
        "part-000000000003-000000000005.npz",
    ]


def test_another_job_is_refused_with_the_differences(tmp_path, store):
    with pytest.raises(ValueError, match=r"precision.*'fp32'.*'bf16'.*--overwrite"):
        store.resume({**SETTINGS, "precision": "bf16"}, output=tmp_path / "out.h5")


def test_damage_names_the_part_and_the_way_on(tmp_path, store):
    path = store.parts[1].path
    content = bytearray(path.read_bytes())
    content[content.index(b"values.npy") + 140] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"part-000000000003.*--resume"):
        list(store.blocks())
    path.write_bytes(content[:100])
    with pytest.raises(FormatError, match=r"part-000000000003"):
        list(store.texts())
    (store.directory / "job.json").write_text("{")
    with pytest.raises(FormatError, match=r"job\.json"):
        store.resume(SETTINGS, output=tmp_path / "out.h5")


@pytest.mark.parametrize("array", ["shapes", "indices"])
def test_a_part_whose_lists_differ_in_length_is_to_be_removed(store, array):
    path = store.parts[1].path
    arrays = dict(np.load(path))
    np.savez(path, **(arrays | {array: arrays[array][:-1]}))
    with pytest.raises(FormatError, match=r"part-000000000003\S+: damaged.* Remove this file"):
        list(store.texts())


@pytest.fixture
def unreadable(store, monkeypatch):
    """The second of three parts cannot be opened for a reason that is not in the file."""
    store.add(5, block(5, 2), None)
    path, code = store.parts[1].path, errno.EIO
    opened = Path.open

    def refuse(self, *args, **kwargs):
        if self == path:
            raise OSError(code, "no reading", str(path))
        return opened(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    return path


def names(store):
    return sorted(path.name for path in store.directory.iterdir())


def test_a_system_error_removes_no_part(tmp_path, store, unreadable):
    before = names(store)
    for change in (
        lambda: store.resume(SETTINGS, output=tmp_path / "out.h5"),
        store.remove,
        lambda: list(store.blocks()),
    ):
        with pytest.raises(OSError, match=unreadable.name) as caught:
            change()
        assert caught.value.errno == errno.EIO
        assert "--resume" not in str(caught.value)
    assert names(store) == before


def test_a_damaged_part_is_refused_before_any_is_removed(tmp_path, store):
    store.add(5, block(5, 2), None)
    store.parts[1].path.write_bytes(b"damaged")
    before = names(store)
    for change in (lambda: store.resume(SETTINGS, output=tmp_path / "out.h5"), store.remove):
        with pytest.raises(InputError, match=r"part-000000000003"):
            change()
    assert names(store) == before


def test_an_older_output_is_told_from_the_finished_one(tmp_path):
    output = tmp_path / "out.h5"
    store = PartStore(tmp_path / "out.h5.parts")
    assert not store.is_finished(output)
    output.write_text("old")
    store.start(SETTINGS, output=output)
    assert not store.is_finished(output)
    aside = tmp_path / "aside"
    aside.write_text("new, and longer")
    aside.replace(output)
    assert store.is_finished(output)
    store.remove()
    assert store.is_finished(output)


def test_job_file_is_readable(store):
    assert json.loads((store.directory / "job.json").read_text())["settings"] == SETTINGS


def test_blocks_written_in_the_background_are_on_disk_at_the_end(store):
    with store.writer(5) as writer:
        writer.add(block(5, 2), None)
        assert writer.end == 7
        writer.add(block(0, 0), None)  # nothing to write
        writer.add(block(7, 1), None)
    assert [part.end for part in store.parts] == [3, 5, 7, 8]


def test_a_block_that_cannot_be_written_is_told_at_the_next_one(store, monkeypatch):
    def fail(first, block, state):
        raise OSError("No space left on device")

    def write(*blocks):
        with store.writer(5) as writer:
            for one in blocks:
                writer.add(one, None)

    monkeypatch.setattr(store, "add", fail)
    for blocks in ([block(5, 2), block(7, 2)], [block(5, 2)]):  # at the next one, or at the end
        with pytest.raises(OSError, match="No space left"):
            write(*blocks)


def test_a_failed_write_is_noted_beside_what_ends_the_job(store, monkeypatch):
    def fail(first, block, state):
        raise OSError("No space left on device")

    def stop():
        with store.writer(5) as writer:
            writer.add(block(5, 2), None)
            raise KeyboardInterrupt

    monkeypatch.setattr(store, "add", fail)
    with pytest.raises(KeyboardInterrupt) as caught:
        stop()
    assert "No space left" in caught.value.__notes__[0]
