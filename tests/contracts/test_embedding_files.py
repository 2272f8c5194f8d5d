"""What every kind of embedding file must do."""

import copy
import gzip
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
from elmokit.errors import FormatError, InputError
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
TEXT, WORDS = "\n".join(LINES) + "\n", [line.split() for line in LINES]


@pytest.fixture(params=KINDS)
def kind(request):
    suffix, file_format = KINDS[request.param]
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    return suffix, file_format


@pytest.fixture
def embedder():
    return Embedder(toy_model())


@pytest.fixture
def embed(kind, embedder, tmp_path):
    """Write `LINES`, or what is given, and embed them; returns path and report."""
    suffix, file_format = kind

    def embed(name="out", text=TEXT, **options):
        if file_format == "bilm-tf" and options.get("layers", "all") != "all":
            pytest.skip("files of this format hold all layers")
        (tmp_path / "text.txt").write_text(text, encoding="utf-8")
        output = tmp_path / f"{name}{suffix}"
        return output, embed_files(
            embedder, tmp_path / "text.txt", output, file_format=file_format, **options
        )

    return embed


def assert_same(path, expected, dtype=np.float32):
    vectors = READERS[path.suffix](path)
    assert sorted(vectors) == list(range(len(expected)))
    for number, array in enumerate(expected):
        assert vectors[number].dtype == dtype
        np.testing.assert_array_equal(vectors[number], array.astype(dtype))


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
def test_vectors_come_back_as_they_were(embed, embedder, layers, dtype):
    output, _ = embed(dtype=dtype, layers=layers)
    expected = embedder.embed(WORDS, layers=layers)
    assert expected[1].shape == ((3, 0, 16) if layers == "all" else (0, 16))
    assert_same(output, expected, np.dtype(dtype))


@pytest.mark.parametrize("layers", ["all", "average"])
def test_pooled_sentences_come_back_as_they_were(embed, embedder, layers):
    options = {"pooling": "max", "layers": layers}
    output, report = embed(dtype="float16", **options)
    expected = embedder.embed_sentences(WORDS, **options)
    assert_same(output, expected, np.float16)
    with elmokit.open_vectors(output) as sentences:
        assert sentences.metadata["pool"] == "max"
        assert [one.tokens for one in sentences] == WORDS
        for read in (sentences, sentences[:]):
            vectors = np.stack([one.vectors for one in read])
            np.testing.assert_array_equal(vectors, expected.astype(np.float16))
        assert sentences.metadata["num_words"] == report.words == 34


def test_open_vectors_reads_words_vectors_and_metadata_back(embed, embedder, kind):
    output, _ = embed()
    expected = embedder.embed(WORDS)
    with elmokit.open_vectors(output) as sentences:
        assert len(sentences) == len(LINES)
        metadata = sentences.metadata
        assert metadata == registry.read_metadata(output)
        assert metadata["model_hash"] == embedder.model.model_hash()
        told = (metadata["state"], metadata["precision"], metadata["format"])
        assert told == ("reset", "fp32", kind[1])
        assert (metadata["num_sentences"], metadata["num_words"]) == (len(LINES), 34)
        assert sentences.line_numbers.tolist() == list(range(len(LINES)))
        for read in (iter(sentences), (sentences[k] for k in range(5)), sentences[-5:]):
            for line, (tokens, vectors) in enumerate(read):
                assert tokens == WORDS[line]
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


def test_forked_workers_read_the_file_for_themselves(embed):
    output, _ = embed(text="I sat by the bank\n" * 50 + "a b c d\n" * 350)
    with elmokit.open_vectors(output) as sentences:
        expected = sums(sentences)
        for _ in range(6 if output.suffix == ".npz" else 1):  # a shared file offset is a race
            loader = torch.utils.data.DataLoader(
                Sums(sentences), batch_size=8, num_workers=2, multiprocessing_context="fork"
            )
            assert torch.cat(list(loader)).tolist() == expected


def test_an_open_file_can_be_pickled(embed, tmp_path, monkeypatch):
    output, _ = embed()
    monkeypatch.chdir(tmp_path)
    with elmokit.open_vectors(output.name) as sentences:
        stored = pickle.dumps(sentences)
        monkeypatch.chdir("/")
        for copied in (pickle.loads(stored), copy.deepcopy(sentences)):
            with copied:
                assert sums(copied) == sums(sentences)
                assert copied.keys() == sentences.keys() == ["0", "1", "2", "3", "4"]
        if output.suffix == ".npz":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                assert pool.apply(list, (sentences,))[3].tokens == WORDS[3]
    with pytest.raises(ValueError, match="closed"):
        pickle.dumps(sentences)


def test_shards_merge_to_the_file_of_the_whole_text(embed, embedder, monkeypatch):
    monkeypatch.setattr(merge, "PART_BYTES", 1000)
    whole, _ = embed("whole")
    shards = [embed(str(i), shard=(i, 3))[0] for i in range(3)]
    merged = whole.with_stem("merged")
    report = merge.merge_shards([shards[2], shards[0], shards[1]], merged)
    assert (report.shards, report.sentences) == (3, len(LINES))
    assert_same(merged, embedder.embed(WORDS))
    with elmokit.open_vectors(whole) as one, elmokit.open_vectors(merged) as other:
        assert [s.tokens for s in one] == [s.tokens for s in other]
        assert one.texts() == other.texts()
        assert other.metadata["shard"] == "0/1"
        assert other.metadata["num_words"] == one.metadata["num_words"] == report.words
        differing = {key for key in one.metadata if one.metadata[key] != other.metadata.get(key)}
        assert differing == {"text_sha256"}


class Killed(BaseException):
    """Stands for SIGKILL."""


def kill(*_, **__):
    raise Killed


@pytest.mark.parametrize("moment", ["embedding", "pooling", "merging", "renamed"])
def test_a_killed_job_goes_on_without_gap_or_double(
    embed, embedder, kind, moment, tmp_path, monkeypatch
):
    output = tmp_path / f"out{kind[0]}"
    options = {"pooling": "mean", "layers": "all"} if moment == "pooling" else {}
    expected = embedder.embed_sentences(WORDS, layers="all") if options else embedder.embed(WORDS)
    monkeypatch.setattr(job, "PART_BYTES", 1000)
    is_early = moment in ("embedding", "pooling")

    def kill_early(done, total, status):
        if is_early and "3 sent" in status:
            kill()

    with monkeypatch.context() as patch:
        if moment == "merging":
            patch.setattr("elmokit.embed.part_store.np.split", kill)
        elif moment == "renamed":
            patch.setattr(Job, "forget", kill)
        with pytest.raises(Killed):
            embed(batch_tokens=8, on_progress=kill_early, **options)
    assert output.exists() == (moment == "renamed")
    _, report = embed(resume=True, **options)
    assert report.resumed_sentences == (3 if is_early else 5)
    assert_same(output, expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == [output.name, "text.txt"]


def test_allennlp_files_map_sentences_to_indices(embedder, tmp_path):
    text, output = tmp_path / "text.txt", tmp_path / "out.hdf5"
    text.write_text(TEXT, encoding="utf-8")
    embed_files(embedder, text, output, file_format="allennlp")
    with h5py.File(output) as file:
        dataset = file["sentence_to_index"]
        assert dataset.shape == (1,)
        assert h5py.check_string_dtype(dataset.dtype).encoding == "utf-8"
        index_of = json.loads(dataset[0])
    assert index_of["I sat by the bank ."] == "3"  # of repeated lines the last counts
    assert index_of["배 를 타고 갔다"] == "2"
    assert index_of[("the river " * 9).strip()] == "4"


SEQUENCES = {"sp|P1|A_1": list("MKTAYIAKQR"), "10": list("GG*"), "2": []}
TEXTS = {key: " ".join(words) for key, words in SEQUENCES.items()}


def rows(form):
    return "".join(form.format(key, text) for key, text in TEXTS.items())


TABLES = {
    ".tsv.gz": ("name\ttext\n" + rows("{}\t{}\n"), {"id_field": "name"}),
    ".csv": ("n,text\n" + rows('{},"{}"\n'), {"id_field": "n"}),
    ".jsonl": (rows('{{"n": "{}", "s": "{}"}}\n'), {"id_field": "n", "text_field": "s"}),
}


def write(path, content):
    data = content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


with_ids = pytest.mark.parametrize("kind", ["elmokit", "parquet", "npz"], indirect=True)


@with_ids
@pytest.mark.parametrize("ending", TABLES)
def test_ids_are_the_keys_in_every_format(ending, kind, embedder, tmp_path):
    content, fields = TABLES[ending]
    text, output = write(tmp_path / f"a{ending}", content), tmp_path / f"out{kind[0]}"
    embed_files(embedder, text, output, **fields)
    with elmokit.open_vectors(output) as sentences:
        assert sentences.keys() == list(SEQUENCES)
        assert sentences.line_numbers.tolist() == [0, 1, 2]
        for key, words in SEQUENCES.items():
            assert sentences[key].tokens == words
            np.testing.assert_array_equal(sentences[key].vectors, embedder.embed([words])[0])
        assert sentences.metadata["keys"] == fields["id_field"]


@with_ids
def test_interrupted_and_merged_shards_keep_their_ids(kind, embedder, tmp_path, monkeypatch):
    content, fields = TABLES[".csv"]
    text, suffix = write(tmp_path / "a.csv", content), kind[0]
    shards = [tmp_path / f"{k}{suffix}" for k in range(2)]
    monkeypatch.setattr(job, "PART_SENTENCES", 1)
    for k, shard in enumerate(shards):
        with pytest.raises(Killed):
            embed_files(embedder, text, shard, shard=(k, 2), on_progress=kill, **fields)
        report = embed_files(embedder, text, shard, shard=(k, 2), resume=True, **fields)
        assert report.resumed_sentences >= 1
    merge.merge_shards(shards[::-1], tmp_path / f"all{suffix}")
    with elmokit.open_vectors(tmp_path / f"all{suffix}") as sentences:
        assert sentences.keys() == list(SEQUENCES)
        assert [tokens for tokens, _ in sentences] == list(SEQUENCES.values())


@pytest.mark.parametrize(
    ("name", "content", "fields", "match"),
    [
        ("a.tsv", "id\ttext\nP1\tx\nP1\ty\n", {"id_field": "id"}, r"line 3.*'P1'.*record 1"),
        ("a.tsv", "id\ttext\n\tx\n", {"id_field": "id"}, r"a\.tsv, line 2.*id"),
        ("a.tsv", "id\ttext\nP/1\tx\n", {"id_field": "id"}, r"line 2.*'P/1'.*\.npz"),
        (
            "a.tsv",
            "id\ttext\nline_numbers\tx\n",
            {"id_field": "id"},
            r"line 2.*'line_numbers'",
        ),
        ("a.tsv", "id\ttext\n1\tx\n", {"id_field": "nr"}, r"a\.tsv.*'nr'.* id, text"),
        ("a.jsonl", '{"id": 1.5, "text": "x"}\n', {"id_field": "id"}, r"line 1.*`id`.*1\.5"),
        ("a.jsonl", '{"id": 1\n', {"id_field": "id"}, r"a\.jsonl, line 1.*JSON"),
        ("a.jsonl", '{"id": "\\ud800", "text": "x"}\n', {"id_field": "id"}, r"line 1.*id"),
        (
            "a.jsonl",
            '{"id": 1, "text": "x"}\n',
            {"id_field": "id", "file_format": "bilm-tf"},
            r"bilm-tf.*elmokit",
        ),
        ("a.txt", "x\n", {"id_field": "id"}, r"a\.txt.*--id-field.*\.tsv"),
    ],
)
def test_wrong_ids_are_told_with_their_place(name, content, fields, match, embedder, tmp_path):
    text = write(tmp_path / name, content)
    with pytest.raises((FormatError, InputError), match=match):
        embed_files(embedder, text, tmp_path / "out.h5", **fields)
    assert [path.name for path in tmp_path.iterdir()] == [name]
