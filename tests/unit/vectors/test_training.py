import random

import numpy as np
import pytest

from elmokit.corpus.shards import write_shards
from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.files.json_files import read_json
from elmokit.vectors.training import VectorsConfig, corpus_shards, train_vectors
from elmokit.vectors.vector_files import read_vectors


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    choose = random.Random(1)
    lines = []
    for _ in range(600):
        animal, act = choose.choice(["cat", "dog", "cow"]), choose.choice(["ate", "slept", "drank"])
        boat, move = choose.choice(["ship", "ferry", "yacht"]), choose.choice(["sank", "sailed"])
        lines += [f"the {animal} {act} at the farm .", f"a {boat} {move} on big seas ."]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def train(corpus):
    def train(output, *, text=corpus, config=None, **options):
        settings = {"dim": 16, "epochs": 3, "buckets": 500} | (config or {})
        return train_vectors([text], output, VectorsConfig(**settings), **options)

    return train


@pytest.mark.parametrize("kind", ["skipgram", "cbow", "fasttext"])
def test_one_thread_and_one_seed_give_the_same_vectors_in_every_form(train, tmp_path, kind):
    for name, seed in [("a.bin", 7), ("b.bin", 7), ("c.bin", 8), ("a.txt", 7)]:
        train(tmp_path / name, config={"kind": kind, "seed": seed, "epochs": 1})
    first, second, other = ((tmp_path / name).read_bytes() for name in ("a.bin", "b.bin", "c.bin"))
    assert first == second
    assert first != other
    binary, text = (read_vectors(tmp_path / name) for name in ("a.bin", "a.txt"))
    assert (tmp_path / "a.txt").read_text("utf-8").startswith("19 16\n")
    assert text.words == binary.words
    assert text.words[:2] == [".", "the"]  # by falling count, ties in code point order
    # only fastText's own form has n-grams, for words that it never saw
    files = (tmp_path / "a.bin", tmp_path / "a.txt")
    unseen = [read_vectors(path, only=["sailing"]).words for path in files]
    assert unseen == [["sailing"] if kind == "fasttext" else [], []]
    if kind != "fasttext":
        np.testing.assert_array_equal(text.values, binary.values)


def test_what_made_the_vectors_stands_beside_them(train, tmp_path, corpus):
    text = tmp_path / "\udce9t\udce9.txt"  # a name that is not UTF-8
    text.write_bytes(corpus.read_bytes())
    report = train(tmp_path / "v.bin", text=text, config={"seed": 3, "min_count": 2})
    assert report.metadata_path == tmp_path / "v.bin.json"
    assert (report.words, report.dim) == (19, 16)
    metadata = read_json(report.metadata_path, advice="")
    expected = {"seed": 3, "min_count": 2, "learning_rate": 0.025, "threads": 1}
    assert expected.items() <= metadata["settings"].items()
    assert (metadata["tokenizer"]["name"], metadata["words"]) == ("simple", 19)
    (file,) = metadata["corpus"]["files"]
    assert (file["path"], file["num_bytes"]) == (str(text), corpus.stat().st_size)
    assert metadata["corpus"]["sentences"] == report.corpus_sentences == 1200
    assert metadata["corpus"]["words"] == report.corpus_words == 600 * 14
    assert metadata["corpus"]["coverage"] == 1.0


@pytest.mark.parametrize(
    ("name", "setting", "error", "named"),
    [
        ("v.npz", {}, InputError, "v.npz"), ("v.bin", {"min_count": 9999}, FormatError, "9999"),
        ("v.bin", {"dim": 0}, ConfigError, "dim"), ("v.bin", {"seed": -1}, ConfigError, "seed"),
    ],
)  # fmt: skip
def test_impossible_settings_are_refused(train, tmp_path, name, setting, error, named):
    with pytest.raises(error, match=named):
        train(tmp_path / name, config=setting)
    assert list(tmp_path.iterdir()) == []


def test_the_text_of_a_table_is_that_of_a_column(train, tmp_path, corpus):
    lines = corpus.read_text(encoding="utf-8").splitlines()
    table = tmp_path / "corpus.tsv"
    rows = ["label\tbody", *(f"word{number}\t{line}" for number, line in enumerate(lines))]
    table.write_text("\n".join(rows), encoding="utf-8")
    train(tmp_path / "a.bin")
    train(tmp_path / "b.bin", text=table, column="body")
    assert (tmp_path / "a.bin").read_bytes() == (tmp_path / "b.bin").read_bytes()


def test_shards_are_taken_as_they_are_if_they_agree(tmp_path, corpus):
    made = {"tokenizer": {"name": "simple", "version": "1"}, "normalization": "NFC"}
    write_shards([["a"]], tmp_path / "a", metadata=made)
    write_shards([["b"], ["c"]], tmp_path / "b", metadata=made)
    other = made | {"tokenizer": {"name": "simple", "version": "2"}}
    write_shards([["d"]], tmp_path / "d", metadata=other)

    def words(*names, tokenizer=None):
        folders = [tmp_path / name for name in names]
        sets = corpus_shards(folders, tmp_path / "none", tokenizer=tokenizer)
        return [word for shards in sets for (word,) in shards.sentences()]

    assert words("a", tokenizer="simple") == ["a"]
    assert words("a", "b") == ["a", "b", "c"]
    for names, tokenizer, message in (
        ("a", "whitespace", "/a .*simple 1.*whitespace"),
        ("ad", None, "/d .*simple 2.*simple 1"),
        (["a", corpus], None, "/a .*alone"),
    ):
        with pytest.raises((ConfigError, InputError), match=message):
            words(*names, tokenizer=tokenizer)
