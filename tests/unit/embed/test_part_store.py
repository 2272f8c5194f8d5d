"""Parts of an embedding job: what comes back, what a gap or damage costs."""

import numpy as np
import pytest

from elmokit.embed.formats.block import Block
from elmokit.embed.part_store import PartStore
from elmokit.errors import FormatError
from elmokit.inference.results import LSTMState


def block(first, count):
    indices = list(range(first, first + count))
    vectors = [np.full((2, i % 3, 4), i, dtype=np.float16) for i in indices]
    return Block(
        indices, [f"line {i} \ud800" for i in indices], [["w"] * (i % 3) for i in indices], vectors
    )


@pytest.fixture
def store(tmp_path):
    (tmp_path / "out.h5.parts").mkdir()
    store = PartStore(tmp_path / "out.h5.parts")
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
    assert list(store.texts())[4] == (4, "line 4 \ud800", 1)
    assert [num_words for *_, num_words in store.texts()] == [0, 1, 2, 0, 1]
    assert store.num_sentences == 5


def test_state_of_the_last_part_is_kept(store):
    assert store.last_state() is None
    state = LSTMState(np.full((1, 2, 1, 4), 0.5, np.float32), np.ones((1, 2, 1, 8), np.float32))
    store.add(5, block(5, 1), state)
    last = store.last_state()
    assert np.array_equal(last.hidden, state.hidden)
    assert np.array_equal(last.cell, state.cell)


def test_what_follows_a_gap_is_missed_and_dropped_when_the_job_goes_on(store):
    store.add(7, block(7, 1), None)
    with pytest.raises(FormatError, match=r"out\.h5\.parts: sentences 5 to 6 .*--resume"):
        list(store.blocks())
    store.drop_after_gap()
    assert store.num_sentences == 5
    assert [block.indices[-1] for block in store.blocks()] == [2, 4]


def test_damage_names_the_part_and_the_way_on(store):
    path = store.paths()[1]
    content = bytearray(path.read_bytes())
    content[content.index(b"values.npy") + 140] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"part-000000000003.*--resume"):
        list(store.blocks())
    path.write_bytes(content[:100])
    with pytest.raises(FormatError, match=r"part-000000000003"):
        list(store.texts())
