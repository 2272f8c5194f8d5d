import numpy as np

from elmokit.vectors.safetensors_file import Table, read_table, recognizes, write_table


def test_a_table_comes_back_as_it_was(tmp_path):
    rng = np.random.default_rng(0)
    table = Table(
        words=["the", "은행", 'a"b'], vectors=rng.normal(size=(3, 4)).astype(np.float32),
        counts=np.array([9, 3, 1]), mean=np.ones(4, np.float32),
        whitening=np.eye(4, dtype=np.float32), made_by={"layers": "average"},
    )  # fmt: skip
    path = tmp_path / "table.safetensors"
    write_table(path, table)
    found = read_table(path)
    assert (found.words, found.layers, found.made_by) == (table.words, "average", table.made_by)
    for name in ("vectors", "counts", "mean", "whitening"):
        assert np.array_equal(getattr(found, name), getattr(table, name))
    assert recognizes(path.read_bytes()[:100])
    assert not recognizes(b"the 0.1 0.2 0.3\n")
