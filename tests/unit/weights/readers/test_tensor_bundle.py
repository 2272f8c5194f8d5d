"""Checkpoints written byte by byte by `tests/builders/foreign_models.py`."""

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.weights.readers.tensor_bundle import TensorBundle

from ....builders import foreign_models as foreign

RNG = np.random.default_rng(0)
ARRAYS = {
    "lm/a": RNG.normal(size=(3, 5)).astype("f4"),
    "lm/a/Adagrad": np.ones((3, 5), "f4"),
    "lm/b": RNG.normal(size=(7,)),
    "lm/big": RNG.normal(size=(100, 60)).astype("f4"),
    "empty": np.zeros((0, 4), "f4"),
    "global_step": np.array(12345, "i8"),
    **{f"many/{i:03d}": np.full((2,), i, "f4") for i in range(40)},
}


def read_all(prefix):
    bundle = TensorBundle(prefix.with_name(prefix.name + ".index"))
    return {name: bundle.read(entry) for name, entry in bundle.entries.items()}


@pytest.mark.parametrize("num_shards", [1, 3])
def test_all_tensors_come_back(num_shards, tmp_path):
    prefix = tmp_path / "model.ckpt-7"
    foreign.write_bundle(prefix, ARRAYS, num_shards=num_shards)
    found = read_all(prefix)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_a_cut_file_is_noticed(tmp_path):
    path = tmp_path / "model.ckpt-7"
    foreign.write_bundle(path, ARRAYS)
    for file in (tmp_path / "model.ckpt-7.data-00000-of-00001", tmp_path / "model.ckpt-7.index"):
        file.write_bytes(file.read_bytes()[:-9])
        with pytest.raises(FormatError, match=file.name):
            read_all(path)


def test_big_endian_is_refused(tmp_path):
    foreign.write_bundle(tmp_path / "m", ARRAYS, big_endian=True)
    with pytest.raises(FormatError, match="little-endian"):
        read_all(tmp_path / "m")


def test_stated_sizes_are_not_believed(tmp_path):
    """A terabyte in an index of a few bytes."""
    dims = b"".join(foreign.field(2, foreign.field(1, size)) for size in (1 << 20, 1 << 18))
    entry = foreign.field(1, 1) + foreign.field(2, dims) + foreign.field(5, 1 << 40)
    entries = [(b"", foreign.field(1, 1)), (b"a", entry)]
    (tmp_path / "m.index").write_bytes(foreign.table(entries))
    (tmp_path / "m.data-00000-of-00001").write_bytes(bytes(100))
    bundle = TensorBundle(tmp_path / "m.index")
    with pytest.raises(FormatError, match=r"should end at byte 1,099,511,627,776"):
        bundle.read(bundle.entries["a"])
