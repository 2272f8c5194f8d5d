"""Embedding files of other programs, hostile and damaged ones; all formats: contracts."""

import json

import h5py
import numpy as np
import pytest

from elmokit.embed.vector_sequence import open_vectors
from elmokit.errors import FormatError

from ...builders import fuzz_targets

VECTORS = np.arange(24, dtype=np.float32).reshape(3, 2, 4)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        for name in ("10", "0", "2"):
            file[name] = VECTORS
    return path


def test_sentences_of_allennlp_have_their_texts(path):
    with h5py.File(path, "a") as file:
        text = h5py.string_dtype("utf-8")
        file.create_dataset("sentence_to_index", (1,), dtype=text)[0] = json.dumps({"a b": "10"})
    with open_vectors(path) as sentences:
        assert sentences.texts() == {10: "a b"}
        assert len(sentences) == 3


def grouped(file):
    file.create_group("3")


def never_written(file):
    file.create_dataset("3", (10**6, 10**6, 4), "f4")


def with_other_words(file):
    file["3"] = VECTORS
    words = json.dumps(["one"]).encode()
    file["3"].attrs.create("tokens", np.array(words, dtype=h5py.string_dtype("utf-8", len(words))))


STRANGE = {
    "a link": h5py.ExternalLink("other.h5", "0"),
    "texts": np.array([b"a"]),
    "whole numbers": VECTORS.astype(np.int32),
}


@pytest.mark.parametrize("add", [grouped, never_written, with_other_words, *STRANGE])
def test_what_leads_elsewhere_or_does_not_fit_is_refused(path, add):
    with h5py.File(path, "a") as file:
        if add in STRANGE:
            file["3"] = STRANGE[add]
        else:
            add(file)
    with open_vectors(path) as sentences:
        assert sentences[0].vectors.shape == (3, 2, 4)
        with pytest.raises(FormatError, match=r"a\.hdf5: "):
            sentences[2]


FOREIGN = {
    "numbers with gaps": (["3", "0"], [3, 0], [1, 0]),
    "numbers that begin with zeros": (["000010", "000002"], [10, 2], [1, 0]),
    "sentences": (["He\tran\t$period$", "2010", "강 에"], None, [1, 0, 2]),
    "ids": (["sp|P12345|AB_X", "12345", "A.1-50"], None, [1, 2, 0]),
    "numbers beyond all lines": (["12345678901234567890123"], None, [0]),
}


@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
@pytest.mark.parametrize("kind", FOREIGN)
def test_files_of_other_programs_are_read_by_their_keys(tmp_path, suffix, kind):
    names, numbers, order = FOREIGN[kind]
    shapes = [(3, 2, 4), (2, 4), (4,)]  # layers, one layer, one vector
    arrays = {
        name: np.full(shape, k, "f4")
        for k, (name, shape) in enumerate(zip(names, shapes, strict=False))
    }
    if suffix == ".npz":
        np.savez_compressed(tmp_path / "a.npz", **arrays)
        order = order if numbers else range(len(names))  # as in the file; HDF5 sorts names
    else:
        with h5py.File(tmp_path / "a.hdf5", "w") as file:
            for name, array in arrays.items():
                file[name] = array
    with open_vectors(tmp_path / f"a{suffix}") as sentences:
        assert sentences.metadata == {}
        assert sentences.keys() == [names[k] for k in order]
        expected = range(len(names)) if numbers is None else sorted(numbers)
        assert sentences.line_numbers.tolist() == list(expected)
        for key, sentence in zip(sentences.keys(), sentences, strict=True):
            assert sentence.tokens is None
            for vectors in (sentence.vectors, sentences[key].vectors):
                np.testing.assert_array_equal(vectors, arrays[key])
        assert names[0] in sentences
        assert "none" not in sentences
        with pytest.raises(KeyError, match="none"):
            sentences["none"]


@pytest.mark.parametrize("seed", [100573, 100587, 100733])
def test_damaged_statistics_of_a_parquet_file_do_not_end_the_process(seed, tmp_path):
    """pyarrow 26 calls `std::terminate` when it is asked for the metadata of such a column."""
    pytest.importorskip("pyarrow")
    (tmp_path / "files").mkdir()
    target = fuzz_targets.TARGETS["parquet"](tmp_path / "files")
    assert target.attempt(seed) in ("read", "refused")
