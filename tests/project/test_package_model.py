"""The recipe that makes a trained model one of the package."""

import importlib.util
import sys
from pathlib import Path

import pytest

from elmokit.errors import InputError

RECIPE = Path(__file__).parents[2] / "recipes/package_model.py"


@pytest.fixture
def package(monkeypatch, tmp_path, workplace):
    spec = importlib.util.spec_from_file_location("package_model", RECIPE)
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    monkeypatch.setattr(recipe, "PACKAGED_MODELS", tmp_path / "models")

    def package(*options):
        arguments = [
            workplace / "model", "xx", "--license", "CC0", "--text", "five sentences",
            "--trained", "not at all", "--valid", workplace / "heldout.txt", *options,
        ]  # fmt: skip
        monkeypatch.setattr(sys, "argv", ["package_model.py", *map(str, arguments)])
        recipe.main()
        return tmp_path / "models/xx"

    package.recipe = recipe
    return package


def test_the_card_has_the_perplexity_of_the_weights_that_ship(package, workplace, tmp_path):
    from elmokit.corpus.readers import read_sentences
    from elmokit.evaluation.perplexity import perplexity
    from elmokit.text.tokenizers.registry import build_tokenizer
    from elmokit.weights.model_dir import load_model

    model = load_model(package("--held-out", "every second line"))
    facts = model.training_metadata
    assert facts["held_out"] == "every second line"
    assert facts["language"] == "xx"
    text = read_sentences([workplace / "heldout.txt"], build_tokenizer(model.tokenizer))
    assert perplexity(model, text).mean == pytest.approx(facts["perplexity"]["mean"], rel=1e-6)
    card = (tmp_path / "models/xx/README.md").read_text(encoding="utf-8")
    for said in ("every second line", "five sentences", "CC0"):
        assert said in card


def test_held_out_text_is_named_by_its_files_unless_it_is_said(package):
    from elmokit.weights.model_dir import load_model

    assert load_model(package()).training_metadata["held_out"] == "heldout.txt"


def test_a_model_too_large_to_ship_leaves_the_packaged_one(package, monkeypatch):
    packaged = package() / "README.md"
    before = packaged.read_bytes()
    monkeypatch.setattr(package.recipe, "MAX_BYTES", 1000)
    with pytest.raises(InputError, match=r",.* 1,000: too large"):
        package("--held-out", "others")
    assert packaged.read_bytes() == before
