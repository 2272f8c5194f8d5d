"""`elmokit vectors` from raw text to a task on static vectors, of Korean morphemes."""

import json
from importlib.resources import files

import pytest

from elmokit.corpus.shards import write_shards

from ..builders.command_line import elmokit

pytestmark = pytest.mark.e2e

TEXT = "배를 타고 섬에 갔다\n사과를 먹었다\n"
LABELS = (
    "text\tlabel\n배를 타고 섬에 갔다\twater\n사과를 깎아 먹었다\tfood\n"
    "항구에서 배를 탔다\twater\n달고 노란 배를 먹었다\tfood\n"
)
SMALL = ("--dim", 32, "--min-count", 2, "--epochs", 20)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The packaged demonstration text in Korean, whose words are morphemes."""
    path = tmp_path_factory.mktemp("corpora") / "ko.txt"
    text = files("elmokit").joinpath("data/demo/ko.txt").read_text(encoding="utf-8")
    path.write_text("\n".join(text.splitlines()[:800]) + f"\n{TEXT * 20}", encoding="utf-8")
    return path


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


def test_korean_vectors_of_morphemes_feed_a_task(corpus, korean_model, tmp_path):
    vectors = tmp_path / "vectors.txt"
    done = elmokit("vectors", corpus, "-o", vectors, "--model", korean_model, *SMALL)
    assert "tokenizer      korean 2, kiwipiepy" in done.stdout
    assert "32 dimensions" in done.stdout
    words = [line.split(" ")[0] for line in vectors.read_text("utf-8").splitlines()[1:]]
    assert {"배", "를", "었", "다"} <= set(words)
    assert "배를" not in words
    facts = json.loads(vectors.with_name(f"{vectors.name}.json").read_text("utf-8"))
    assert facts["words"] > 200
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text(LABELS, encoding="utf-8")
    done = elmokit(
        "train", "sentiment", "--data", tmp_path, "--vectors", vectors, "--model", korean_model,
        "--embeddings", "static", "-o", tmp_path / "run", "--json", "--set", "train.epochs=100",
        "--set", "train.patience=100", "--set", "hidden_dims=[16]",
        "--set", "train.learning_rate=0.02",
    )  # fmt: skip
    assert json.loads(done.stdout)["dev"] == 100.0
    answers = elmokit("predict", tmp_path / "run", "-", given=TEXT).stdout
    assert len(answers.splitlines()) == 2


def test_damaged_shards_are_refused_before_anything_is_written(tmp_path):
    write_shards([["by", "the", "river"]] * 20, tmp_path / "shards", metadata={"sources": []})
    path = tmp_path / "shards" / "shard-00000.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    refused = elmokit("vectors", tmp_path / "shards", "-o", tmp_path / "v.bin", expect=2).stderr
    assert "shard-00000.bin: damaged" in refused
    assert not (tmp_path / "v.bin").exists()
