"""The recipe that trains a tagger and makes it one of the package."""

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from elmokit.errors import ConfigError
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.vectors.vector_files import read_vectors, write_vectors

RECIPE = Path(__file__).parents[2] / "recipes/package_tagger.py"
NAMES = ("ner-en", "ner-ko", "pos-en", "pos-ko")
SENTENCES = (
    "Minji B-PER\nKim I-PER\nsat O\n\nby O\nBank B-LOC\n\nI O\nsat O\n\nby O\nMinji B-PER\n\n"
)
SETTINGS = """
model = "{model}"
held_out = 1
block = 1
[run]
task = "ner"
hidden_dims = [8]
dropout = 0.0
[run.train]
epochs = 3
learning_rate = 0.03
batch_size = 2
[card]
language = "xx"
license = "CC0"
data = "four sentences"
limits = "many"
"""


@pytest.fixture
def module():
    spec = importlib.util.spec_from_file_location("package_tagger", RECIPE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def package(module, monkeypatch, tmp_path, workplace):
    (tmp_path / "data").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "data" / f"{split}.conll").write_text(SENTENCES, encoding="utf-8")
    (tmp_path / "recipes").mkdir()
    settings = SETTINGS.format(model=workplace / "model")
    (tmp_path / "recipes" / "ner-xx.toml").write_text(settings, encoding="utf-8")
    monkeypatch.setattr(module, "RECIPES", tmp_path / "recipes")
    monkeypatch.setattr(module, "PACKAGED_RUNS", tmp_path / "taggers")
    page = tmp_path / "page.md"
    page.write_text("above <!-- taggers: begin -->\nold\n<!-- taggers: end --> below")
    monkeypatch.setattr(module, "PAGES", {page: "en"})

    def package(*more):
        arguments = ["ner-xx", "--data", tmp_path / "data", "--work", tmp_path / "work", *more]
        monkeypatch.setattr(sys, "argv", ["package_tagger.py", *map(str, arguments)])
        module.main()
        return tmp_path / "taggers" / "ner-xx"

    return package


def test_the_card_has_the_score_of_the_weights_that_ship(package, tmp_path):
    target = package()
    run = TaskRun.load(target)
    score = run.evaluate(tmp_path / "data" / "dev.conll")
    facts = run.metadata["card"]
    assert f"**span F1 {score.value:.2f}**" in facts["scored"]
    assert set(facts["scores"]) == {"PER", "LOC"}
    assert run.metadata["weights"] == "int8"
    card = (target / "README.md").read_text(encoding="utf-8")
    assert card == run.card()
    for said in ("# ner-xx", "four sentences", "CC0", "1 sentences of the training set"):
        assert said in card
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert f"| `ner-xx` | span F1 {score.value:.2f} | 0.0 |" in page
    assert page.startswith("above <")
    assert page.endswith("> below")
    # nothing of the machine it was made on, but for the biLM's name
    assert str(tmp_path) not in card + json.dumps(run.metadata)


def test_vectors_ship_with_the_tagger(package, tmp_path, capsys):
    vectors = tmp_path / "small.txt"
    vectors.write_text("Minji 1 2\nOslo 3 4\nrare 5 6\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        package("--vectors", vectors)
    assert "ner-xx has no `vectors` in its recipe: leave out --vectors" in capsys.readouterr().err
    path = tmp_path / "recipes" / "ner-xx.toml"
    more = 'vectors = "two of them"\nnum_vectors = 2\n'
    path.write_text(more + path.read_text(), encoding="utf-8")
    with pytest.raises(SystemExit):
        package()
    error = capsys.readouterr().err
    assert "ner-xx needs --vectors FILE: two of them; " in error
    assert "ner-xx.toml says how" in error
    target = package("--vectors", vectors)
    other = tmp_path / "other.txt"
    other.write_text("Minji 9 9\nOslo 9 9\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"vectors\.bin is of other vectors than .*other\.txt"):
        package("--vectors", other)
    (tmp_path / "work/ner-xx/vectors.bin").unlink()
    run = TaskRun.load(target)
    card = (target / "README.md").read_text(encoding="utf-8")
    assert "- vectors: two of them" in card
    assert " --vectors FILE --work runs`" in card
    assert run.metadata["vectors"]["path"] == "vectors.bin"
    assert (target / "vectors.txt").read_text().split() == ["Minji", "Oslo"]
    assert len(list(run.predict(["Oslo sat"]))) == 1
    assert str(tmp_path) not in json.dumps(run.metadata)


def test_a_tagger_of_lower_case_is_scored_there_too(package, tmp_path):
    path = tmp_path / "recipes" / "ner-xx.toml"
    share = "[run.train]\nlowercase_share = 1.0\n"
    path.write_text(path.read_text().replace("[run.train]\n", share), encoding="utf-8")
    run = TaskRun.load(package())
    lower = run.evaluate(tmp_path / "data" / "dev.conll", lowercase=True).value
    assert f"; all of it in lower case {lower:.2f}." in run.metadata["card"]["scored"]


def test_a_card_says_what_the_dev_set_was_used_for(package, tmp_path):
    path = tmp_path / "recipes" / "ner-xx.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("[card]\n", '[card]\n"lower case" = "of dev errors"\n'), "utf-8")
    assert "except that its errors" in TaskRun.load(package()).metadata["card"]["scored"]


def test_vectors_without_their_number_are_refused(package, tmp_path):
    path = tmp_path / "recipes" / "ner-xx.toml"
    path.write_text('vectors = "some"\n' + path.read_text(), encoding="utf-8")
    with pytest.raises(ConfigError, match="`num_vectors`"):
        package()


def test_vectors_are_reduced_by_a_truncated_svd(module, package, tmp_path):
    values = np.random.default_rng(0).normal(size=(9, 2)) @ [[1.0, 2, 0], [0, 1, 1]]  # of rank 2
    write_vectors(tmp_path / "source.bin", [f"w{number}" for number in range(9)], values)
    recipe = module.read_recipe("ner-xx")
    recipe = dataclasses.replace(recipe, vectors="some", num_vectors=6, vector_dim=2)
    found = read_vectors(module.first_vectors(recipe, tmp_path / "source.bin", tmp_path))
    assert found.words == [f"w{number}" for number in range(6)]
    np.testing.assert_allclose(
        found.values[2:] @ found.values[2:].T, values[:6] @ values[:6].T, atol=1e-5
    )


def test_the_held_out_part_is_not_trained_on(package, tmp_path):
    package()
    train, held = (
        (tmp_path / "work/ner-xx" / f"{n}.txt").read_text() for n in ("train", "held-out")
    )
    blocks = SENTENCES.strip().split("\n\n")
    assert sorted([*train.strip().split("\n\n"), held.strip()]) == sorted(blocks)


def test_further_training_data_are_never_held_out(package, tmp_path, capsys):
    further = tmp_path / "names.conll"
    further.write_text("Anna B-PER\nran O\n\nOslo B-LOC\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        package("--further", further)
    assert "leave out --further" in capsys.readouterr().err
    path = tmp_path / "recipes" / "ner-xx.toml"
    path.write_text('further = "two more"\n' + path.read_text(), encoding="utf-8")
    with pytest.raises(SystemExit):
        package()
    assert "ner-xx needs --further FILE: two more; " in capsys.readouterr().err
    card = (package("--further", further) / "README.md").read_text(encoding="utf-8")
    assert "- further training data: two more" in card
    assert " --further FILE --work runs`" in card
    train, held = (
        (tmp_path / "work/ner-xx" / f"{n}.txt").read_text() for n in ("train", "held-out")
    )
    assert train.endswith("\n\n" + further.read_text() + "\n")
    assert "Anna" not in held
    assert len(train.strip().split("\n\n")) == 5


def test_a_finished_training_is_packaged_again_without_training(package, tmp_path):
    first = package() / "model.safetensors"
    rows = (tmp_path / "work/ner-xx/run/metrics.jsonl").read_text()
    content = first.read_bytes()
    assert (package() / "model.safetensors").read_bytes() == content
    assert (tmp_path / "work/ner-xx/run/metrics.jsonl").read_text() == rows


def test_a_tagger_too_large_to_ship_is_told(package, module, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    with pytest.raises(SystemExit, match=r"/packaged .*,.* 1,000"):
        package()


def test_a_misspelled_setting_is_refused(package, tmp_path):
    path = tmp_path / "recipes" / "ner-xx.toml"
    path.write_text(path.read_text().replace("held_out", "heldout"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"ner-xx\.toml.*`heldout`.*`held_out`"):
        package()


@pytest.mark.parametrize("name", NAMES)
def test_every_tagger_has_a_recipe_on_a_packaged_model(name, module):
    from elmokit.weights.locate import packaged_models

    recipe = module.read_recipe(name)
    assert name == f"{recipe.run.task}-{recipe.card['language']}"
    assert recipe.model == recipe.card["language"]
    assert recipe.model in packaged_models()
    assert {"license", "data", "limits", "example", "label_meanings"} <= set(recipe.card)


def test_documents_are_held_out_in_blocks(module, tmp_path, package):
    text = "".join(f"w{number}\tO\n\n" for number in range(1000))
    (tmp_path / "source.conll").write_text(text, encoding="utf-8")
    recipe = module.read_recipe("ner-xx")
    recipe = dataclasses.replace(recipe, held_out=200, block=100)
    train, held_out = module.divide(recipe, tmp_path / "source.conll", tmp_path)
    numbers = [int(line[1:-2]) for line in held_out.read_text().split("\n") if line]
    assert len(numbers) == 200
    assert len({number // 100 for number in numbers}) == 2
    assert numbers == sorted(numbers)
    assert len(train.read_text().split()) == 2 * 800
