"""Which files are merged; what comes out: contracts of embedding files."""

import json

import h5py
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.embed.merge import merge_shards
from elmokit.errors import InputError

from ...builders.embedding_models import embed_files, toy_model


@pytest.fixture
def shards(tmp_path):
    (tmp_path / "t.txt").write_text("".join(f"line {i}\n" for i in range(8)))
    embedder = Embedder(toy_model())

    def make(number, count, name=None, **options):
        path = tmp_path / f"{name or number}.h5"
        embed_files(embedder, tmp_path / "t.txt", path, shard=(number, count), **options)
        return path

    return make


def test_shards_that_do_not_belong_together_are_refused(shards, tmp_path):
    first, second, third = (shards(i, 3) for i in range(3))
    other = shards(2, 3, "other", layers="top")
    for paths, message in (
        ([first, second], r"0\.h5 is 0/3, .*1\.h5 is 1/3"),
        ([first, second, second], r"0\.h5 is 0/3, .*1\.h5 is 1/3"),
        ([first, second, other], r"layers .*'all' .*'top'"),
    ):
        with pytest.raises(InputError, match=message):
            merge_shards(paths, tmp_path / "all.h5")
    assert not (tmp_path / "all.h5").exists()
    paths = [first, second, third]
    with pytest.raises(InputError, match=r"/0\.h5 .*output"):  # a shard is never replaced
        merge_shards(paths, first, overwrite=True)
    merge_shards(paths, tmp_path / "all.h5")
    with pytest.raises(FileExistsError, match="--overwrite"):
        merge_shards(paths, tmp_path / "all.h5")
    assert merge_shards(paths, tmp_path / "all.h5", overwrite=True).sentences == 8


def test_metadata_that_are_missing_are_named_with_their_file(shards, tmp_path):
    paths = [shards(i, 2) for i in range(2)]
    with h5py.File(paths[1], "a") as file:
        metadata = json.loads(str(file.attrs["elmokit"]))
        del metadata["dim"]
        file.attrs["elmokit"] = json.dumps(metadata)
    with pytest.raises(InputError, match=r"1\.h5 .*dim"):
        merge_shards(paths, tmp_path / "all.parquet")
