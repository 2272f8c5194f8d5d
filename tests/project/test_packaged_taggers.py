"""The taggers that ship: small, licensed, on the model beside them, right about easy sentences."""

import importlib
import json
import re
from pathlib import Path

import pytest

import elmokit
from elmokit.config import from_dict
from elmokit.errors import InputError
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.runs.run_dir import read_metadata
from elmokit.weights.locate import PACKAGED_RUNS, TASK_RUNS
from elmokit.weights.model_dir import load_model

ROOT = Path(__file__).parents[2]
MAX_BYTES, MAX_BYTES_TOGETHER = 3_000_000, 10_000_000
FORBIDDEN = ("NC", "ND")
"""Parts of licenses under which no data of a packaged tagger may stand."""
LEAST = {"ner-en": 60, "ner-ko": 70, "pos-en": 92, "pos-ko": 95}
"""Scores on dev below which something is broken."""
NAMES = sorted(LEAST)


@pytest.fixture(scope="module")
def taggers():
    """Loads each tagger once."""
    loaded = {}

    def load(name):
        if name.endswith("ko"):
            pytest.importorskip("kiwipiepy")
        if name not in loaded:
            loaded[name] = elmokit.TaskRun.load(name, device="cpu")
        return loaded[name]

    return load


def test_there_are_four_of_little_weight():
    assert TASK_RUNS.names() == NAMES
    sizes = [
        sum(path.stat().st_size for path in (PACKAGED_RUNS / name).iterdir()) for name in NAMES
    ]
    assert max(sizes) <= MAX_BYTES
    assert sum(sizes) <= MAX_BYTES_TOGETHER


@pytest.mark.parametrize("name", NAMES)
def test_its_card_says_what_it_is_and_may_be_used_for(name, taggers):
    card = (PACKAGED_RUNS / name / "README.md").read_text(encoding="utf-8")
    run = taggers(name)
    assert card == run.card()
    facts = run.metadata["card"]
    assert not set(facts["license"].replace("-", " ").split()) & set(FORBIDDEN)
    assert facts["license"] in facts["data"]
    assert facts["limits"] in card
    assert facts["score"] > LEAST[name]
    assert f"{facts['score']:.2f}" in card
    assert re.search(r"(^|[\s'\"`])/\w+/", card + json.dumps(run.metadata)) is None
    assert set(facts["label_meanings"]) >= set(facts["scores"])


@pytest.mark.parametrize("name", NAMES)
def test_it_was_trained_on_the_model_that_is_in_the_package(name):
    bilm = read_metadata(PACKAGED_RUNS / name)["bilm"]
    assert bilm["path"] == name[-2:]
    assert bilm["model_hash"] == load_model(bilm["path"]).model_hash()


@pytest.mark.parametrize("name", NAMES)
def test_it_was_made_by_its_recipe(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "recipes")
    metadata = read_metadata(PACKAGED_RUNS / name)
    recipe = importlib.import_module("publish").read_recipe(name)
    config = from_dict(TaskRunConfig, metadata["config"], source=name)
    assert config == recipe.run.resolved(with_static=bool(recipe.vectors))
    assert metadata.get("keeps_vectors", False) == bool(recipe.vectors)
    card = (PACKAGED_RUNS / name / "README.md").read_text(encoding="utf-8")
    assert all(str(value) in card for value in recipe.card.values() if isinstance(value, str))
    assert recipe.vectors in card


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pos-en", "She  sat by the river.", "She/PRON sat/VERB by/ADP the/DET river/NOUN ./PUNCT"),
        ("ner-en", "Barack Obama  went to Canada.", "[Barack Obama PER]  went to [Canada LOC]."),
        ("ner-en", "barack obama went to canada.", "[barack obama PER] went to [canada LOC]."),
        ("pos-ko", "나는 학교에 갔다.",
         "나/npp 는/jxt 학교/ncn 에/jca 가/pvg 었/ep 다/ef ./sf"),
        ("ner-ko", "3월 5일,  “이순신”은 서울에 갔다.",
         "[3월 5일 DT],  “[이순신 PS]”은 [서울 LC]에 갔다."),
    ],
)  # fmt: skip
def test_it_answers_in_the_text_as_it_was_written(name, text, expected, taggers):
    run = taggers(name)
    (found,) = run.predict([text])
    assert run.task.show(*found) == expected
    (answer,) = run.predict_json([text])
    assert answer["text"] == text
    for one in answer.get("entities", answer["tokens"]):
        assert 0 < one["probability"] <= 1
        if name != "pos-ko":  # whose 갔다 is three morphemes
            assert text[one["start"] : one["end"]] == one["text"]


@pytest.mark.parametrize("name", NAMES)
def test_odd_texts_are_answered_and_what_is_no_text_is_refused(name, taggers):
    run = taggers(name)
    odd = ["", " ", "🙂🙂", "a" * 3000, "갔\u200b다 \ufeff(ﬁ)"]
    assert [answer["text"] for answer in run.predict_json(odd)] == odd
    with pytest.raises(InputError, match=r"Text 2: .*surrogate"):
        list(run.predict(["a", "\ud800"]))
    with pytest.raises(TypeError, match="`texts`"):
        run.predict("one text")


def test_a_folder_of_that_name_is_none_unless_it_has_a_run(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ner-en").mkdir()
    assert TASK_RUNS.find("ner-en") == PACKAGED_RUNS / "ner-en"
    (tmp_path / "ner-en/task.json").touch()
    assert TASK_RUNS.find("ner-en").resolve() == tmp_path / "ner-en"
    assert "not the packaged task run 'ner-en'" in caplog.text
