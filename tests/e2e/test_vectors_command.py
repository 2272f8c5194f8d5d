"""`elmokit vectors` from raw text to a task on static vectors, in English and Korean."""

import json
from importlib.resources import files

import pytest

from elmokit.corpus.shards import write_shards

from ..builders.command_line import elmokit

pytestmark = pytest.mark.e2e

TEXTS = {
    "en": "the old man crossed the river\nshe borrowed money from the bank\n",
    "ko": "배를 타고 섬에 갔다\n사과를 먹었다\n",
}
LABELS = {
    "en": "text\tlabel\nthe boat sank in the river\twater\nthe bank lent him money\tmoney\n"
    "they swam in the river\twater\nshe paid the bank\tmoney\n",
    "ko": "text\tlabel\n배를 타고 섬에 갔다\twater\n사과를 깎아 먹었다\tfood\n"
    "항구에서 배를 탔다\twater\n달고 노란 배를 먹었다\tfood\n",
}

SMALL = ("--dim", 32, "--min-count", 2, "--epochs", 20)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """The packaged demonstration text: English as it is; Korean, whose words are morphemes."""
    folder = tmp_path_factory.mktemp("corpora")
    for language in ("en", "ko"):
        text = files("elmokit").joinpath(f"data/demo/{language}.txt").read_text(encoding="utf-8")
        lines = text.splitlines()[:800]
        if language == "ko":
            lines += TEXTS["ko"].splitlines() * 20
        (folder / f"{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def korean_model(tmp_path_factory):
    """A model of morphemes; what vectors take of it is the tokenizer."""
    from elmokit.bilm.bilm import BiLMConfig
    from elmokit.bilm.char_cnn import CharCNNConfig
    from elmokit.bilm.lstmp import LSTMConfig
    from elmokit.text.char_vocab import CharVocabConfig
    from elmokit.text.tokenizers.registry import TokenizerConfig
    from elmokit.weights.model_dir import PretrainedBiLM

    config = BiLMConfig(
        char_vocab=CharVocabConfig(),
        char_cnn=CharCNNConfig(embedding_dim=4, filters=((1, 4),), num_highway=1),
        lstm=LSTMConfig(num_layers=1, cell_dim=8, projection_dim=4),
    )
    directory = tmp_path_factory.mktemp("korean") / "model"
    PretrainedBiLM(config, tokenizer=TokenizerConfig(name="korean")).save(directory)
    return directory


def test_english_vectors_feed_a_task(corpora, tmp_path):
    vectors = tmp_path / "vectors.bin"
    done = elmokit("vectors", corpora / "en.txt", "-o", vectors, *SMALL, "--json")
    report = json.loads(done.stdout)
    assert report["path"] == str(vectors)
    assert report["dim"] == 32
    assert report["words"] > 500
    assert 0.9 < report["coverage"] < 1
    facts = json.loads((tmp_path / "vectors.bin.json").read_text("utf-8"))
    assert facts["words"] == report["words"]
    check_task(tmp_path, "en", vectors)


@pytest.mark.parametrize("kind", ["skipgram", "fasttext"])
def test_korean_vectors_of_morphemes_feed_a_task(corpora, korean_model, tmp_path, kind):
    vectors = tmp_path / ("vectors.txt" if kind == "skipgram" else "vectors.bin")
    buckets = () if kind == "skipgram" else ("--buckets", 2000)
    done = elmokit(
        "vectors", corpora / "ko.txt", "-o", vectors, "--model", korean_model, "--kind", kind,
        *SMALL, *buckets,
    )  # fmt: skip
    assert "tokenizer      korean 2, kiwipiepy" in done.stdout
    assert "32 dimensions" in done.stdout
    if kind == "skipgram":
        words = [line.split(" ")[0] for line in vectors.read_text("utf-8").splitlines()[1:]]
        assert {"배", "를", "었", "다"} <= set(words)
        assert "배를" not in words
    check_task(tmp_path, "ko", vectors, "--model", korean_model)


def check_task(folder, language, vectors, *model):
    """Train on four texts until they are known; score and predict with the same vectors."""
    (folder / "data").mkdir()
    for split in ("train", "dev"):
        (folder / "data" / f"{split}.tsv").write_text(LABELS[language], encoding="utf-8")
    done = elmokit(
        "train", "sentiment", "--data", folder / "data", "--vectors", vectors, *model,
        "--embeddings", "static", "-o", folder / "run", "--json", "--set", "train.epochs=100",
        "--set", "train.patience=100", "--set", "hidden_dims=[16]",
        "--set", "train.learning_rate=0.02",
    )  # fmt: skip
    assert json.loads(done.stdout)["dev"] == 100.0
    text = folder / "text.txt"
    text.write_text(TEXTS[language], encoding="utf-8")
    assert len(elmokit("predict", folder / "run", text).stdout.splitlines()) == 2


def test_shards_of_a_run_give_the_vectors_of_its_text(corpora, tmp_path):
    elmokit(
        "pretrain", corpora / "en.txt", "-o", tmp_path / "model", "--preset", "toy",
        "--tokens", 20_000,
    )  # fmt: skip
    model = tmp_path / "model"
    of_shards = elmokit("vectors", model / "shards", "-o", tmp_path / "a.bin", "--dim", 8,
                        "--model", model, "--json")  # fmt: skip
    of_text = elmokit("vectors", corpora / "en.txt", "-o", tmp_path / "b.bin", "--dim", 8,
                      "--model", model, "--json")  # fmt: skip
    shards, text = (json.loads(done.stdout) for done in (of_shards, of_text))
    assert shards["tokenizer"] == text["tokenizer"]
    assert shards["corpus_sentences"] < text["corpus_sentences"] == 800  # some were held out


def test_damaged_shards_are_refused_before_anything_is_written(tmp_path):
    write_shards([["by", "the", "river"]] * 20, tmp_path / "shards", metadata={"sources": []})
    path = tmp_path / "shards" / "shard-00000.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    refused = elmokit("vectors", tmp_path / "shards", "-o", tmp_path / "v.bin", expect=2).stderr
    assert "shard-00000.bin: damaged" in refused
    assert not (tmp_path / "v.bin").exists()
