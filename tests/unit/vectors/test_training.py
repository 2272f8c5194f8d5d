import random
import unicodedata

import numpy as np
import pytest

from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.files.json_files import read_json


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Animals do one thing, boats another: who is like whom is known."""
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
    from elmokit.vectors.training import VectorsConfig, train_vectors

    def train(output, *, text=corpus, config=None, **options):
        settings = {"dim": 16, "epochs": 3, "buckets": 500} | (config or {})
        return train_vectors([text], output, VectorsConfig(**settings), **options)

    return train


def read(path, only=None):
    from elmokit.vectors.vector_files import read_vectors

    return read_vectors(path, only=only)


@pytest.mark.parametrize("kind", ["skipgram", "cbow", "fasttext"])
def test_words_that_stand_alike_have_like_vectors(train, tmp_path, kind):
    report = train(tmp_path / "v.bin", config={"kind": kind, "epochs": 25})
    vectors = read(tmp_path / "v.bin")
    assert report.words == len(vectors.words) == 19
    assert vectors.dim == report.dim == 16

    def cosine(word, other):
        a, b = (vectors.values[vectors.id_of(each)] for each in (word, other))
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    assert cosine("cat", "dog") > cosine("cat", "ship") + 0.1
    assert cosine("ferry", "yacht") > cosine("ferry", "cow") + 0.1


@pytest.mark.parametrize("kind", ["skipgram", "fasttext"])
def test_one_thread_and_one_seed_give_the_same_vectors_in_every_form(train, tmp_path, kind):
    for name, seed in [("a.bin", 7), ("b.bin", 7), ("c.bin", 8), ("a.txt", 7)]:
        train(tmp_path / name, config={"kind": kind, "seed": seed, "epochs": 1})
    first, second, other = ((tmp_path / name).read_bytes() for name in ("a.bin", "b.bin", "c.bin"))
    assert first == second
    assert first != other
    binary, text = (read(tmp_path / name) for name in ("a.bin", "a.txt"))
    assert (tmp_path / "a.txt").read_text("utf-8").startswith("19 16\n")
    assert text.words == binary.words
    assert text.words[:2] == [".", "the"]  # by falling count, ties in code point order
    # only fastText's own form has n-grams, for words that it never saw
    unseen = [read(tmp_path / name, only=["sailing"]).words for name in ("a.bin", "a.txt")]
    assert unseen == [["sailing"] if kind == "fasttext" else [], []]
    if kind == "skipgram":
        np.testing.assert_array_equal(text.values, binary.values)


def test_what_made_the_vectors_stands_beside_them(train, tmp_path, corpus):
    import elmokit

    text = tmp_path / "\udce9t\udce9.txt"  # a name that is not UTF-8
    text.write_bytes(corpus.read_bytes())
    report = train(tmp_path / "v.bin", text=text, config={"seed": 3, "min_count": 2})
    assert report.metadata_path == tmp_path / "v.bin.json"
    metadata = read_json(report.metadata_path, advice="")
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
    assert (file["path"], file["num_bytes"]) == (str(text), corpus.stat().st_size)
    assert metadata["corpus"]["sentences"] == report.corpus_sentences == 1200
    assert metadata["corpus"]["words"] == report.corpus_words == 600 * 14
    assert metadata["corpus"]["coverage"] == 1.0


@pytest.mark.parametrize(
    ("name", "setting", "error", "message"),
    [
        ("v.npz", {}, InputError, r"/v\.npz .*\.bin .*\.txt .*\.vec "),
        ("v.bin", {"min_count": 9999}, FormatError, r" 9999 .* 8,400 .*min_count"),
        ("v.bin", {"dim": 0}, ConfigError, r"`dim` .* 1 to .* 0$"),
        ("v.bin", {"seed": -1}, ConfigError, r"`seed` .* 0 .* 4,294,967,295.* -1$"),
    ],
)
def test_impossible_settings_are_refused(train, tmp_path, name, setting, error, message):
    with pytest.raises(error, match=message):
        train(tmp_path / name, config=setting)
    assert list(tmp_path.iterdir()) == []


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
    from elmokit.vectors.training import corpus_shards

    decomposed = unicodedata.normalize("NFD", "강물 didn't")
    path = tmp_path / "corpus.txt"
    path.write_text(decomposed, encoding="utf-8")
    words = ["강물", "did", "n't"]
    simple = {"tokenizer": "simple", "version": "1", "normalization": "NFC"}
    for settings, named, expected, version in (
        ({}, None, decomposed.split(), "1"),
        ({}, "simple:en", [*decomposed[:-7].split(), "did", "n't"], "3, en"),
        (simple, None, words, "1"),
        (simple, "simple", words, "1"),  # it keeps its version if it is named
        (None, None, ["강물", "didn't"], "3"),
    ):
        folder = tmp_path / f"{settings}{named}"
        model = None if settings is None else save_model(folder, **settings)
        (shards,) = corpus_shards([path], folder / "shards", model=model, tokenizer=named)
        if settings is not None:
            assert shards.metadata["normalization"] == settings.get("normalization", "none")
        assert shards.tokenizer.version == version
        assert list(shards.sentences()) == [expected]


def test_shards_are_taken_as_they_are_if_they_agree(tmp_path, corpus):
    from elmokit.corpus.shards import write_shards
    from elmokit.vectors.training import corpus_shards

    made = {"tokenizer": {"name": "simple", "version": "1"}, "normalization": "NFC"}
    for name, change in {
        "a": {}, "b": {}, "c": {"normalization": "plain-1"},
        "d": {"tokenizer": {"name": "simple", "version": "2"}},
    }.items():  # fmt: skip
        write_shards([[name]], tmp_path / name, metadata=made | change)

    def words(*names, tokenizer=None):
        folders = [tmp_path / name for name in names]
        shards = corpus_shards(folders, tmp_path / "none", tokenizer=tokenizer)
        return [word for part in shards for (word,) in part.sentences()]

    assert words("b", "a", tokenizer="simple") == ["b", "a"]
    for names, tokenizer, message in (
        ("ac", None, "/c .*plain-1.* NFC"), ("ad", None, "/d .*simple 2.*simple 1"),
        ("a", "whitespace", "/a .*simple 1.*whitespace"), (["a", corpus], None, "/a .*corpus.txt"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=message):
            words(*names, tokenizer=tokenizer)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "none'"),
        (["shards/manifest.json"], "training run.*/model/shards"),
        (["config.json", "model.safetensors"], "is a model, not text"),
        (["task.json", "model.safetensors"], "is a model, not text"),
    ],
)
def test_a_run_in_place_of_a_text_and_a_missing_model_are_told(tmp_path, corpus, files, message):
    from elmokit.vectors.training import corpus_shards

    (tmp_path / "config.json").write_text("{}")  # a folder of texts may hold a file of that name
    for file in files:
        path = tmp_path / "model" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    model = None if files else str(tmp_path / "none")
    places = [tmp_path / "model"] if files else [corpus]
    with pytest.raises((InputError, FileNotFoundError), match=message):
        corpus_shards(places, tmp_path / "shards", model=model)
