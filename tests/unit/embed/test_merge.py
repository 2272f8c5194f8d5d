"""Which files are merged; what comes out: contracts of embedding files."""

import json

import h5py
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.embed.merge import merge_shards
from elmokit.embed.vector_sequence import open_vectors
from elmokit.errors import FormatError, InputError

from ...builders.command_line import elmokit
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


def test_the_command_reports_what_it_merged(shards, tmp_path):
    paths = [shards(i, 3) for i in range(3)]
    done = elmokit("merge", *paths, "-o", tmp_path / "all.h5")
    assert "sentences   8\nwords       16\n" in done.stdout
    refused = elmokit("merge", *paths, "-o", tmp_path / "all.h5", expect=2)
    assert "--overwrite" in refused.stderr
    elmokit("merge", *paths, "-o", tmp_path / "all.h5", "--overwrite")
    with open_vectors(tmp_path / "all.h5") as sentences:
        assert [one.tokens for one in sentences] == [["line", str(i)] for i in range(8)]


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
    with pytest.raises(InputError, match=r"/0\.h5 .*output"):  # a shard is never replaced
        merge_shards([first, second, third], first, overwrite=True)


@pytest.mark.parametrize("key", ["format", "text_sha256", "dim"])
def test_missing_metadata_are_named_with_their_file(shards, tmp_path, key):
    paths = [shards(i, 2) for i in range(2)]
    with h5py.File(paths[1], "a") as file:
        metadata = json.loads(str(file.attrs["elmokit"]))
        del metadata[key]
        file.attrs["elmokit"] = json.dumps(metadata)
    with pytest.raises(FormatError, match=rf"1\.h5: .*`{key}`"):
        merge_shards(paths, tmp_path / "all.parquet")
