"""Vectors of annotated words in a temporary file."""

import errno
import os
import tempfile

import pytest

from ...builders.probe_sources import TableSource, annotated, inventory

TABLE = {"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]]}


@pytest.fixture
def words():
    from elmokit.probes.sense_words import SenseWords

    corpus = [
        annotated("1", "a", (0, 1, "x", "NOUN", "x%1")),
        annotated("2", "b a", (0, 2, "x", "NOUN", "x%2"), (1, 2, "y", "NOUN", "y%1")),
        annotated("3", "b", (0, 1, "y", "NOUN", "y%1")),
    ]
    return SenseWords(corpus, [annotated("1", "b", (0, 1, "x", "NOUN", "x%1"))], inventory())


def test_each_ambiguous_word_has_its_row_and_the_file_is_gone_afterwards(
    words, tmp_path, monkeypatch
):
    from elmokit.probes.vector_table import vector_table

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = TableSource(TABLE, ("one", "two"))
    with vector_table(source, words) as table:
        assert table.shape == (2, 5, 2)
        assert table[0].tolist() == [[1, 2], [3, 4], [5, 6], [0, 0], [0, 0]]
        assert table[1, 1].tolist() == [5, 6]
        assert source.read == [("a",), ("b", "a"), ("b",)]
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []


def test_without_ambiguous_words_nothing_is_embedded():
    from elmokit.probes.sense_words import SenseWords
    from elmokit.probes.vector_table import vector_table

    words = SenseWords([annotated("1", "a", (0, 1, "x", "NOUN", "x%1"))], [], inventory())
    source = TableSource(TABLE, ("one", "two"))
    with vector_table(source, words) as table:
        assert table.shape == (2, 1, 0)
    assert source.read == []


def test_a_full_disk_is_told_before_vectors_are_written(words, monkeypatch):
    from elmokit.probes import vector_table as module

    def full(path, num_bytes):
        assert num_bytes == 2 * 5 * 2 * 4
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "reserve", full)
    with (
        pytest.raises(OSError, match="vectors") as error,
        module.vector_table(TableSource(TABLE, ("one", "two")), words),
    ):
        pass
    assert error.value.errno == errno.ENOSPC
