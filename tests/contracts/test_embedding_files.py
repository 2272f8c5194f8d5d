"""What every kind of embedding file must do."""

import copy
import json
import multiprocessing
import pickle

import h5py
import numpy as np
import pytest
import torch

import elmokit
from elmokit.embed import job, merge
from elmokit.embed.embedder import Embedder
from elmokit.embed.formats import registry
from elmokit.jobs.job import Job

from ..builders.embedding_models import embed_files, toy_model

LINES = ["I sat by the bank .", "", "배 를 타고 갔다", "I sat by the bank .", "the river " * 9]
KINDS = {
    "elmokit": (".h5", "elmokit"),
    "bilm-tf": (".hdf5", "bilm-tf"),
    "allennlp": (".hdf5", "allennlp"),
    "parquet": (".parquet", "elmokit"),
    "npz": (".npz", "elmokit"),
}


def read_hdf5(path):
    with h5py.File(path) as file:
        return {int(key): file[key][...] for key in file if key != "sentence_to_index"}


def read_npz(path):
    with np.load(path, allow_pickle=False) as file:
        return {int(key): file[key] for key in file if key.isdecimal()}


def read_parquet(path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(path)
    columns = [name for name in table.column_names if name not in ("id", "tokens")]
    vectors = {}
    for row, index in enumerate(table["id"].to_pylist()):
        layers = []
        for name in columns:
            words = table[name][row].values
            if "list" not in str(words.type):  # a pooled sentence
                layers.append(words.to_numpy(zero_copy_only=False))
                continue
            dim = words.type.list_size
            layers.append(words.flatten().to_numpy(zero_copy_only=False).reshape(len(words), dim))
        vectors[index] = np.stack(layers) if len(columns) > 1 else layers[0]
    return vectors


READERS = {".h5": read_hdf5, ".hdf5": read_hdf5, ".parquet": read_parquet, ".npz": read_npz}


@pytest.fixture(params=list(KINDS))
def kind(request):
    suffix, file_format = KINDS[request.param]
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    return suffix, file_format


@pytest.fixture
def embedder():
    return Embedder(toy_model())


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def expected_vectors(embedder, **options):
    arrays = embedder.embed([line.split() for line in LINES], **options)
    return dict(enumerate(arrays))


def assert_same(got, expected, dtype=np.float32):
    assert sorted(got) == sorted(expected)
    for key, array in expected.items():
        assert got[key].dtype == dtype
        np.testing.assert_array_equal(got[key], array.astype(dtype))


@pytest.mark.parametrize(
    ("layers", "dtype"),
    [
        ("all", "float32"),
        ("all", "float16"),
        ("top", "float32"),
        ("average", "float16"),
        (0, "float32"),
    ],
)  # fmt: skip
def test_vectors_come_back_as_they_were(kind, embedder, text, tmp_path, layers, dtype):
    suffix, file_format = kind
    if file_format == "bilm-tf" and layers != "all":
        pytest.skip("files of this format hold all layers")
    output = tmp_path / f"out{suffix}"
    embed_files(embedder, text, output, file_format=file_format, dtype=dtype, layers=layers)
    got = READERS[suffix](output)
    assert_same(got, expected_vectors(embedder, layers=layers), np.dtype(dtype))
    assert got[1].shape == ((3, 0, 16) if layers == "all" else (0, 16))


@pytest.mark.parametrize("layers", ["all", "average"])
def test_pooled_sentences_come_back_as_they_were(kind, embedder, text, tmp_path, layers):
    suffix, file_format = kind
    if file_format == "bilm-tf" and layers != "all":
        pytest.skip("files of this format hold all layers")
    output = tmp_path / f"out{suffix}"
    report = embed_files(
        embedder,
        text,
        output,
        file_format=file_format,
        pooling="max",
        layers=layers,
        dtype="float16",
    )
    expected = embedder.embed_sentences(
        [line.split() for line in LINES], pooling="max", layers=layers
    )
    assert_same(READERS[suffix](output), dict(enumerate(expected)), np.float16)
    with elmokit.open_vectors(output) as sentences:
        assert sentences.metadata["pool"] == "max"
        assert [one.tokens for one in sentences] == [line.split() for line in LINES]
        for read in (sentences, sentences[:]):
            found = np.stack([one.vectors for one in read])
            np.testing.assert_array_equal(found, expected.astype(np.float16))
        assert sentences.metadata["num_words"] == report.words == 34


def test_open_vectors_reads_words_vectors_and_metadata_back(kind, embedder, text, tmp_path):
    suffix, file_format = kind
    output = tmp_path / f"out{suffix}"
    embed_files(embedder, text, output, file_format=file_format)
    expected = expected_vectors(embedder)
    with elmokit.open_vectors(output) as sentences:
        assert len(sentences) == len(LINES)
        metadata = sentences.metadata
        assert metadata == registry.read_metadata(output)
        assert metadata["model_hash"] == embedder.model.model_hash()
        told = (metadata["state"], metadata["precision"], metadata["format"])
        assert told == ("reset", "fp32", file_format)
        assert (metadata["num_sentences"], metadata["num_words"]) == (len(LINES), 34)
        assert sentences.line_numbers.tolist() == list(range(len(LINES)))
        for read in (iter(sentences), (sentences[k] for k in range(5)), sentences[-5:]):
            for line, (tokens, vectors) in enumerate(read):
                assert tokens == LINES[line].split()
                np.testing.assert_array_equal(vectors, expected[line])
                assert vectors.dtype == np.float32
        with pytest.raises(IndexError):
            sentences[5]


def sums(sentences):
    return [float(vectors.sum()) for _, vectors in sentences]


class Sums:
    """A data set of PyTorch."""

    def __init__(self, sentences):
        self.sentences = sentences

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, position):
        return float(self.sentences[position].vectors.sum())


def test_forked_workers_read_the_file_for_themselves(kind, embedder, tmp_path):
    suffix, file_format = kind
    (tmp_path / "t.txt").write_text(
        "I sat by the bank\n" * 50 + "a b c d\n" * 350, encoding="utf-8"
    )
    output = tmp_path / f"out{suffix}"
    embed_files(embedder, tmp_path / "t.txt", output, file_format=file_format)
    with elmokit.open_vectors(output) as sentences:
        expected = sums(sentences)
        for _ in range(6 if suffix == ".npz" else 1):  # a shared file offset is a race
            loader = torch.utils.data.DataLoader(
                Sums(sentences), batch_size=8, num_workers=2, multiprocessing_context="fork"
            )
            assert torch.cat(list(loader)).tolist() == expected


def test_an_open_file_can_be_pickled(kind, embedder, text, tmp_path, monkeypatch):
    suffix, file_format = kind
    embed_files(embedder, text, tmp_path / f"out{suffix}", file_format=file_format)
    monkeypatch.chdir(tmp_path)
    with elmokit.open_vectors(f"out{suffix}") as sentences:
        stored = pickle.dumps(sentences)
        monkeypatch.chdir("/")
        for copied in (pickle.loads(stored), copy.deepcopy(sentences)):
            with copied:
                assert sums(copied) == sums(sentences)
                assert copied.keys() == sentences.keys() == ["0", "1", "2", "3", "4"]
        if suffix == ".npz":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                assert pool.apply(list, (sentences,))[3].tokens == LINES[3].split()
    with pytest.raises(ValueError, match="closed"):
        pickle.dumps(sentences)


def test_shards_merge_to_the_file_of_the_whole_text(kind, embedder, text, tmp_path, monkeypatch):
    monkeypatch.setattr(merge, "PART_BYTES", 1000)
    suffix, file_format = kind
    whole, merged = tmp_path / f"whole{suffix}", tmp_path / f"merged{suffix}"
    embed_files(embedder, text, whole, file_format=file_format)
    shards = [tmp_path / f"{i}{suffix}" for i in range(3)]
    for i, shard in enumerate(shards):
        embed_files(embedder, text, shard, file_format=file_format, shard=(i, 3))
    report = merge.merge_shards([shards[2], shards[0], shards[1]], merged)
    assert (report.shards, report.sentences) == (3, len(LINES))
    assert_same(READERS[suffix](merged), READERS[suffix](whole))
    with elmokit.open_vectors(whole) as one, elmokit.open_vectors(merged) as other:
        assert [s.tokens for s in one] == [s.tokens for s in other]
        assert one.texts() == other.texts()
        assert other.metadata["shard"] == "0/1"
        assert other.metadata["num_words"] == one.metadata["num_words"] == report.words
        differing = {key for key in one.metadata if one.metadata[key] != other.metadata.get(key)}
        assert differing == {"text_sha256"}


class Killed(BaseException):
    """Stands for SIGKILL."""


def kill(*args, **kwargs):
    raise Killed


@pytest.mark.parametrize(
    ("moment", "chosen"),
    [
        ("embedding", {}),
        ("merging", {}),
        ("merged", {}),
        ("renamed", {}),
        ("embedding", {"pooling": "mean", "layers": "all"}),
    ],
)
def test_a_killed_job_goes_on_without_gap_or_double(
    kind, embedder, text, tmp_path, moment, chosen, monkeypatch
):
    suffix, file_format = kind
    output = tmp_path / f"out{suffix}"
    monkeypatch.setattr(job, "PART_BYTES", 1000)
    write = job.write_embeddings
    with monkeypatch.context() as patch:
        options = {}
        if moment == "embedding":
            options["on_progress"] = lambda done, total, status: kill() if "3 sent" in status else 0
        elif moment == "merging":
            patch.setattr("elmokit.embed.part_store.np.split", kill)
        elif moment == "merged":
            patch.setattr(job, "write_embeddings", lambda *a, **k: [write(*a, **k), kill()])
        else:
            patch.setattr(Job, "forget", lambda self: kill() if output.exists() else None)
        with pytest.raises(Killed):
            embed_files(
                embedder, text, output, file_format=file_format, batch_tokens=8, **options, **chosen
            )
    assert output.exists() == (moment == "renamed")

    report = embed_files(embedder, text, output, file_format=file_format, resume=True, **chosen)
    assert report.resumed_sentences == (3 if moment == "embedding" else 5)
    expected = expected_vectors(embedder)
    if chosen:
        pooled = embedder.embed_sentences([line.split() for line in LINES], layers="all")
        expected = dict(enumerate(pooled))
    assert_same(READERS[suffix](output), expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == [output.name, "text.txt"]


def test_allennlp_files_map_sentences_to_indices(embedder, text, tmp_path):
    output = tmp_path / "out.hdf5"
    embed_files(embedder, text, output, file_format="allennlp")
    with h5py.File(output) as file:
        dataset = file["sentence_to_index"]
        assert dataset.shape == (1,)
        assert h5py.check_string_dtype(dataset.dtype).encoding == "utf-8"
        index_of = json.loads(dataset[0])
    assert index_of["I sat by the bank ."] == "3"  # of repeated lines the last counts
    assert index_of["배 를 타고 갔다"] == "2"
    assert index_of[("the river " * 9).strip()] == "4"
