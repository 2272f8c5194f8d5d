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
def test_all_tensors_come_back_and_a_damaged_one_is_noticed(num_shards, tmp_path):
    prefix = tmp_path / "model.ckpt-7"
    foreign.write_bundle(prefix, ARRAYS, num_shards=num_shards)
    found = read_all(prefix)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    for shard in tmp_path.glob("*.data-*"):
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 1
        shard.write_bytes(data)
    with pytest.raises(FormatError, match="checksum of the index"):
        read_all(prefix)


def test_every_damaged_byte_of_the_index_is_noticed(tmp_path):
    path = tmp_path / "model.ckpt-7"
    foreign.write_bundle(path, dict(list(ARRAYS.items())[:2]))
    index = tmp_path / "model.ckpt-7.index"
    whole = index.read_bytes()
    padding = [at for at in range(len(whole) - 48, len(whole) - 8) if whole[at] == 0]
    for at in sorted({*range(len(whole))} - {*padding}):
        index.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with pytest.raises(FormatError, match=index.name):
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
