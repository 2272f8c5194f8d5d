"""Parts of an embedding job: what comes back, what a gap or damage costs."""

import numpy as np
import pytest

from elmokit.embed.formats.rows import Row
from elmokit.embed.part_store import PartStore
from elmokit.errors import FormatError
from elmokit.inference.results import LSTMState


def rows(first, count):
    return [
        Row(i, str(i), f"line {i} \ud800", ["w"] * (i % 3), np.full((2, i % 3, 4), i, np.float16))
        for i in range(first, first + count)
    ]


@pytest.fixture
def store(tmp_path):
    (tmp_path / "out.h5.parts").mkdir()
    store = PartStore(tmp_path / "out.h5.parts")
    store.add(0, rows(0, 3), None)
    store.add(3, rows(3, 2), None)
    return store


def test_sentences_and_the_last_state_come_back_as_they_went_in(store):
    blocks = list(store.blocks(5))
    assert list(map(len, blocks)) == [3, 2]
    for row, expected in zip([*blocks[0], *blocks[1]], rows(0, 5), strict=True):
        assert row[:4] == expected[:4]
        assert row.vectors.dtype == np.float16
        np.testing.assert_array_equal(row.vectors, expected.vectors)
    assert list(store.texts())[4] == (4, "line 4 \ud800", 1)
    assert store.num_sentences == 5
    assert store.last_state() is None
    state = LSTMState(np.full((1, 2, 1, 4), 0.5, np.float32), np.ones((1, 2, 1, 8), np.float32))
    store.add(5, rows(5, 1), state)
    last = store.last_state()
    assert np.array_equal(last.hidden, state.hidden)
    assert np.array_equal(last.cell, state.cell)


def test_what_follows_a_gap_is_missed_and_dropped_when_the_job_goes_on(store):
    store.add(7, rows(7, 1), None)
    with pytest.raises(FormatError, match=r"out\.h5\.parts: sentences 5 to 6 .*--resume"):
        list(store.blocks(8))
    store.drop_after_gap()
    assert store.num_sentences == 5
    assert [block[-1].line_number for block in store.blocks(5)] == [2, 4]


def test_damage_names_the_part_and_the_way_on(store):
    path = store.paths()[1]
    content = bytearray(path.read_bytes())
    content[content.index(b"values.npy") + 140] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"part-000000000003.*--resume"):
        list(store.blocks(5))
    path.write_bytes(content[:100])
    with pytest.raises(FormatError, match=r"part-000000000003"):
        list(store.texts())
