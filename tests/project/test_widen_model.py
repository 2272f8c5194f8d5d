"""The recipe that makes a trained model wider."""

import importlib.util
from pathlib import Path

import pytest

from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.evaluation.perplexity import perplexity
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.model_dir import PretrainedBiLM, load_model

from ..builders.embedding_models import WORDS, random_sentences, toy_model

RECIPE = Path(__file__).parents[2] / "recipes/widen_model.py"
WIDER = {"cell_dim": 40, "projection_dim": 12, "normalization": "plain-1", "num_samples": 4}


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("widen_model", RECIPE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def model():
    vocab = WordVocab(["<S>", "</S>", "<UNK>", *WORDS])
    toy = toy_model()
    softmax = SoftmaxConfig(num_samples=3)
    model = PretrainedBiLM(toy.config, word_vocab=vocab, softmax_config=softmax)
    model.load_state_dict(toy.state_dict(), strict=False)
    return model.eval()


def test_a_wider_model_computes_the_same(recipe, model):
    wide = recipe.widened(model, **WIDER)
    assert (wide.config.lstm.cell_dim, wide.config.lstm.projection_dim) == (40, 12)
    text = random_sentences(20)
    assert perplexity(wide, text).mean == pytest.approx(perplexity(model, text).mean, rel=1e-5)


def test_its_new_weights_are_not_zero_where_something_must_learn(recipe, model):
    wide = recipe.widened(model, **WIDER)
    for name, fresh in wide.state_dict().items():
        old = model.state_dict()[name]
        new_rows = fresh[len(old) :]
        if "bias" not in name and "_layers" not in name and len(new_rows):
            assert new_rows.any(), name
    for layer in wide.forward_layers:
        for gate in layer.input_weight.chunk(4):
            assert gate[model.config.lstm.cell_dim :].all()
            assert not gate[: model.config.lstm.cell_dim, model.config.lstm.projection_dim :].any()


def test_a_model_is_not_made_narrower(recipe, model):
    with pytest.raises(ValueError, match="24 cells and 8 dimensions"):
        recipe.widened(model, **WIDER | {"cell_dim": 16})


def test_it_is_written_as_a_model_of_todays_tokenizer(recipe, model, monkeypatch, tmp_path):
    model.save(tmp_path / "model")
    arguments = [
        "widen_model.py", tmp_path / "model", tmp_path / "wide", "--cell", "32",
        "--projection", "16", "--samples", "2",
    ]  # fmt: skip
    monkeypatch.setattr("sys.argv", [str(argument) for argument in arguments])
    recipe.main()
    wide = load_model(tmp_path / "wide")
    assert wide.config.lstm.projection_dim == 16
    assert wide.config.char_vocab.normalization == "plain-1"
    assert wide.tokenizer.version
