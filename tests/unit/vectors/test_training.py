import json
import random
import sys
import unicodedata

import numpy as np
import pytest

from elmokit.errors import ConfigError, FormatError, InputError, MissingExtraError


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Animals do one thing, boats another: who is like whom is known."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    chosen = random.Random(1)
    lines = []
    for _ in range(1500):
        animal, act = chosen.choice(["cat", "dog", "cow"]), chosen.choice(["ate", "slept", "drank"])
        boat, move = chosen.choice(["ship", "ferry", "yacht"]), chosen.choice(["sank", "sailed"])
        lines += [f"the {animal} {act} at the farm .", f"a {boat} {move} on big seas ."]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def train(corpus):
    from elmokit.vectors.training import VectorsConfig, train_vectors

    def train(output, *, config=None, **options):
        settings = {"dim": 16, "epochs": 3, "buckets": 500} | (config or {})
        return train_vectors([corpus], output, VectorsConfig(**settings), **options)

    return train


def cosine(vectors, one, other):
    a, b = (vectors.values[vectors.id_of(word)] for word in (one, other))
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.parametrize("kind", ["skipgram", "cbow", "fasttext"])
def test_words_that_stand_alike_have_like_vectors(train, tmp_path, kind):
    from elmokit.vectors.vector_files import read_vectors

    report = train(tmp_path / "v.bin", config={"kind": kind, "epochs": 10})
    vectors = read_vectors(tmp_path / "v.bin")
    assert report.words == len(vectors.words) == 19
    assert vectors.dim == report.dim == 16
    assert cosine(vectors, "cat", "dog") > cosine(vectors, "cat", "ship") + 0.1
    assert cosine(vectors, "ferry", "yacht") > cosine(vectors, "ferry", "cow") + 0.1


@pytest.mark.parametrize("kind", ["skipgram", "fasttext"])
def test_one_thread_and_one_seed_give_the_same_vectors(train, tmp_path, kind):
    for name, seed in [("a.bin", 7), ("b.bin", 7), ("c.bin", 8)]:
        train(tmp_path / name, config={"kind": kind, "seed": seed})
    first, second, other = ((tmp_path / name).read_bytes() for name in ("a.bin", "b.bin", "c.bin"))
    assert first == second
    assert first != other


def test_text_and_binary_hold_the_same_vectors(train, tmp_path):
    from elmokit.vectors.vector_files import read_vectors

    for name in ("v.bin", "v.txt"):
        train(tmp_path / name)
    binary, text = (read_vectors(tmp_path / name) for name in ("v.bin", "v.txt"))
    assert (tmp_path / "v.txt").read_text("utf-8").startswith("19 16\n")
    assert text.words == binary.words
    assert text.words[:2] == [".", "the"]  # by falling count, ties in code point order
    np.testing.assert_array_equal(text.values, binary.values)


def test_fasttext_gives_words_that_it_never_saw_a_vector(train, tmp_path):
    from elmokit.vectors.vector_files import read_vectors

    train(tmp_path / "v.bin", config={"kind": "fasttext"})
    assert read_vectors(tmp_path / "v.bin", only=["sailing"]).words == ["sailing"]
    train(tmp_path / "v.txt", config={"kind": "fasttext"})
    assert read_vectors(tmp_path / "v.txt", only=["sailing"]).words == []


def test_what_made_the_vectors_stands_beside_them(train, tmp_path, corpus):
    import elmokit

    report = train(tmp_path / "v.bin", config={"seed": 3, "min_count": 2})
    assert report.metadata_path == tmp_path / "v.bin.json"
    metadata = json.loads(report.metadata_path.read_text("utf-8"))
    assert metadata["elmokit_version"] == elmokit.__version__
    assert metadata["made_by"]["gensim"].startswith("4.")
    assert metadata["settings"] == {
        "kind": "skipgram", "dim": 16, "window": 5, "min_count": 2, "epochs": 3, "negative": 5,
        "buckets": 500, "seed": 3, "learning_rate": 0.025, "sample": 0.001, "threads": 1,
    }  # fmt: skip
    assert metadata["tokenizer"]["name"] == "simple"
    assert metadata["normalization"] == "plain-1"
    assert metadata["words"] == 19
    (file,) = metadata["corpus"]["files"]
    assert (file["path"], file["num_bytes"]) == (str(corpus), corpus.stat().st_size)
    assert metadata["corpus"]["sentences"] == report.corpus_sentences == 3000
    assert metadata["corpus"]["words"] == report.corpus_words == 1500 * 14
    assert metadata["corpus"]["coverage"] == 1.0


def test_a_corpus_whose_name_is_not_utf8_is_told(tmp_path, corpus):
    from elmokit.files.json_files import read_json
    from elmokit.vectors.training import VectorsConfig, train_vectors

    path = tmp_path / "\udce9t\udce9.txt"
    path.write_bytes(corpus.read_bytes())
    report = train_vectors([path], tmp_path / "v.bin", VectorsConfig(dim=4, epochs=1))
    (file,) = read_json(report.metadata_path, advice="")["corpus"]["files"]
    assert file["path"] == str(path)


def test_progress_goes_through_both_stages_to_the_end(train, tmp_path):
    told = []
    train(tmp_path / "v.bin", on_progress=lambda *event: told.append(event))
    stages = [stage for stage, _, _ in told]
    assert stages == sorted(stages)  # tokenizing, then training
    assert ("tokenizing", 7000, None) in told
    trained = [(done, total) for stage, done, total in told if stage == "training"]
    assert {total for _, total in trained} == {3 * 21_000}
    assert [done for done, _ in trained] == sorted(done for done, _ in trained)
    assert trained[-1][0] > 2 * 21_000


def test_an_error_in_the_thread_that_reads_ends_the_training(train, tmp_path):
    def fail(stage, done, total):
        if stage == "training" and done > 30_000:
            raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        train(tmp_path / "v.bin", on_progress=fail)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_in_the_temporary_directory(train, tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    train(tmp_path / "v.bin")
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("taken", ["v.bin", "v.bin.json"])
def test_what_is_there_is_replaced_only_if_asked_for(train, tmp_path, taken):
    (tmp_path / taken).write_text("precious")
    with pytest.raises(FileExistsError, match=f"/{taken} .*--overwrite"):
        train(tmp_path / "v.bin")
    assert [path.name for path in tmp_path.iterdir()] == [taken]
    train(tmp_path / "v.bin", overwrite=True)
    assert (tmp_path / taken).read_bytes() != b"precious"


def test_the_corpus_is_never_replaced(train, corpus):
    with pytest.raises(InputError, match=r"/corpus\.txt "):
        train(corpus, overwrite=True)


def test_a_name_without_a_form_and_rare_words_are_told(train, tmp_path):
    with pytest.raises(InputError, match=r"/v\.npz .*\.bin .*\.txt .*\.vec "):
        train(tmp_path / "v.npz")
    with pytest.raises(FormatError, match=r" 9999 .* 21,000 .*min_count"):
        train(tmp_path / "v.bin", config={"min_count": 9999})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"dim": 0}, r"`dim` .* 1, .* 0\."), ({"seed": -1}, r"`seed` .* 0 .* 4,294,967,295.* -1$")],
)
def test_impossible_settings_are_refused(train, tmp_path, setting, message):
    with pytest.raises(ConfigError, match=message):
        train(tmp_path / "v.bin", config=setting)


def test_without_gensim_the_extra_is_named(train, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(MissingExtraError, match=r"gensim.*pip install .*\[static\]"):
        train(tmp_path / "v.bin")


def save_model(directory, *, tokenizer="whitespace", version="", normalization="none"):
    from elmokit.bilm.bilm import BiLMConfig
    from elmokit.bilm.char_cnn import CharCNNConfig
    from elmokit.bilm.lstmp import LSTMConfig
    from elmokit.text.char_vocab import CharVocabConfig
    from elmokit.text.tokenizers.registry import TokenizerConfig
    from elmokit.weights.model_dir import PretrainedBiLM

    config = BiLMConfig(
        char_vocab=CharVocabConfig(normalization=normalization),
        char_cnn=CharCNNConfig(embedding_dim=4, filters=((1, 4),), num_highway=1),
        lstm=LSTMConfig(num_layers=1, cell_dim=8, projection_dim=4),
    )
    tokenizer = TokenizerConfig(name=tokenizer, version=version)
    PretrainedBiLM(config, tokenizer=tokenizer).save(directory)
    return str(directory)


def test_tokenizer_and_normalization_are_those_of_the_model(tmp_path):
    from elmokit.vectors.training import open_corpus_of_model

    decomposed = unicodedata.normalize("NFD", "강물 didn't")
    path = tmp_path / "corpus.txt"
    path.write_text(decomposed, encoding="utf-8")
    raw = open_corpus_of_model([path], save_model(tmp_path / "raw"), None)
    assert list(raw.sentences) == [decomposed.split()]
    assert (raw.tokenizer.name, raw.normalization) == ("whitespace", "none")
    composed = open_corpus_of_model(
        [path], save_model(tmp_path / "nfc", tokenizer="simple", normalization="NFC"), None
    )
    assert list(composed.sentences) == [["강물", "did", "n't"]]
    assert list(open_corpus_of_model([path], None, None).sentences) == [["강물", "did", "n't"]]


def test_the_tokenizer_of_the_model_keeps_its_version_if_it_is_named(tmp_path, corpus):
    from elmokit.vectors.training import open_corpus_of_model

    model = save_model(tmp_path / "model", tokenizer="simple", version="1")
    assert open_corpus_of_model([corpus], model, "simple").tokenizer.version == "1"


def test_a_tokenizer_that_is_named_wins_over_that_of_the_model(tmp_path, corpus):
    from elmokit.vectors.training import open_corpus_of_model

    found = open_corpus_of_model([corpus], save_model(tmp_path / "model"), "simple")
    assert found.tokenizer.name == "simple"
    assert found.normalization == "none"


def test_a_model_that_is_not_there_is_told(tmp_path, corpus):
    from elmokit.vectors.training import open_corpus_of_model

    with pytest.raises(FileNotFoundError, match=r"'.*/none'"):
        open_corpus_of_model([corpus], str(tmp_path / "none"), None)
    with pytest.raises(FileNotFoundError, match=r"/corpus\.txt .*config\.json"):
        open_corpus_of_model([corpus], str(corpus), None)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("shards/manifest.json", "training run.*/model/shards"),
        ("config.json", "is a model, not text"),
        ("task.json", "is a model, not text"),
    ],
)
def test_a_run_in_place_of_a_text_is_told(tmp_path, file, message):
    from elmokit.errors import InputError
    from elmokit.vectors.training import open_corpus_of_model

    path = tmp_path / "model" / file
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    (path.parent / "model.safetensors").touch()
    with pytest.raises(InputError, match=message):
        open_corpus_of_model([tmp_path / "model"], None, None)


def test_a_folder_of_texts_may_hold_a_file_of_that_name(tmp_path):
    from elmokit.vectors.training import open_corpus_of_model

    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "text.txt").write_text("the bank\n")
    open_corpus_of_model([tmp_path], None, None)
