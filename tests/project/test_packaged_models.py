"""The models and taggers that ship: small, licensed, whole, right about easy sentences."""

import json
import re
import shutil
import time
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.config import from_dict
from elmokit.errors import FormatError, InputError
from elmokit.evaluation.perplexity import perplexity
from elmokit.tasks.runs.run_dir import TaskRunConfig, read_metadata
from elmokit.weights.locate import PACKAGED_MODELS, PACKAGED_RUNS, TASK_RUNS, packaged_models
from elmokit.weights.model_dir import load_model

from ..builders.command_line import elmokit as run_command

ROOT = Path(__file__).parents[2]
SENTENCES = {"en": "I sat by the bank .", "ko": "나는 강가에 앉아 있었다."}
LEAST = {"ner-en": 60, "ner-ko": 70, "pos-en": 92, "pos-ko": 95, "sentiment-ko": 85}
"""Scores on dev below which something is broken."""
PATH_OF_A_MACHINE = re.compile(r"(^|[\s'\"`])/\w+/")


def num_bytes(directory):
    return sum(path.stat().st_size for path in directory.iterdir())


def allows_use(license):
    return not {"NC", "ND"} & set(license.replace("-", " ").split())


@cache
def load_tagger(name):
    if name.endswith("ko"):
        pytest.importorskip("kiwipiepy")
    return elmokit.TaskRun.load(name, device="cpu")


def test_there_are_two_models_and_five_task_models_of_little_weight():
    assert packaged_models() == sorted(SENTENCES)
    assert max(num_bytes(PACKAGED_MODELS / name) for name in SENTENCES) <= 20_000_000
    assert TASK_RUNS.names() == sorted(LEAST)
    sizes = [num_bytes(PACKAGED_RUNS / name) for name in LEAST]
    assert max(sizes) <= 3_000_000
    assert sum(sizes) <= 12_500_000


@pytest.mark.parametrize("name", SENTENCES)
def test_a_model_predicts_loads_fast_and_its_card_says_what_it_is(name):
    started = time.thread_time()
    embedder = elmokit.Embedder.load(name)
    assert time.thread_time() - started < 2
    (vectors,) = embedder.embed([SENTENCES[name]])
    assert vectors.shape[0] == embedder.num_layers == 3
    assert np.isfinite(vectors).all()
    model = load_model(PACKAGED_MODELS / name)
    facts = model.training_metadata
    assert facts["language"] == name
    assert allows_use(facts["license"])
    assert facts["text"]
    assert facts["limits"]
    card = (PACKAGED_MODELS / name / "README.md").read_text(encoding="utf-8")
    assert model.model_hash() in card
    assert facts["license"] in card
    assert PATH_OF_A_MACHINE.search(card) is None
    mean = facts["perplexity"]["mean"]
    for page, said in (("README.md", f"{mean:.1f} (`{name}`)"),
                       ("README.ko.md", f"`{name}` {mean:.1f}")):  # fmt: skip
        assert said in (ROOT / page).read_text(encoding="utf-8")
    text = [sentence.split() for sentence in model.warm_text[:20]]
    assert perplexity(model, text).mean < len(model.word_vocab) / 50


@pytest.mark.parametrize("name", LEAST)
def test_a_tagger_is_what_its_card_and_recipe_say(name, program):
    card = (PACKAGED_RUNS / name / "README.md").read_text(encoding="utf-8")
    run, metadata = load_tagger(name), read_metadata(PACKAGED_RUNS / name)
    assert card == program("tagger_files").tagger_card(PACKAGED_RUNS / name)
    facts = run.metadata["card"]
    assert allows_use(facts["license"])
    assert facts["license"] in facts["data"]
    assert facts["score"] > LEAST[name]
    assert all(text in card for text in (facts["limits"], f"{facts['score']:.2f}"))
    assert PATH_OF_A_MACHINE.search(card + json.dumps(run.metadata)) is None
    assert set(facts["label_meanings"]) >= set(facts["scores"])
    bilm = metadata["bilm"]
    assert (bilm["path"], bilm["model_hash"]) == (name[-2:], load_model(name[-2:]).model_hash())
    recipe = tomllib.loads((ROOT / f"recipes/taggers/{name}.toml").read_text("utf-8"))
    made_with = from_dict(TaskRunConfig, recipe["run"], source=name)
    config = from_dict(TaskRunConfig, metadata["config"], source=name)
    assert config == made_with.resolved(with_static="vectors" in recipe)
    assert metadata.get("keeps_vectors", False) == ("vectors" in recipe)
    assert all(str(value) in card for value in recipe["card"].values() if isinstance(value, str))


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
def test_a_tagger_answers_in_the_text_as_it_was_written(name, text, expected):
    run = load_tagger(name)
    (prediction,) = run.predict([text])
    assert run.task.show(*prediction) == expected
    (answer,) = run.predict_json([text])
    assert answer["text"] == text
    for part in answer.get("entities", answer["tokens"]):
        assert 0 < part["probability"] <= 1
        if name != "pos-ko":  # whose 갔다 is three morphemes
            assert text[part["start"] : part["end"]] == part["text"]
    odd = ["", " ", "🙂🙂", "a" * 3000, "갔\u200b다 \ufeff(ﬁ)"]
    assert [answer["text"] for answer in run.predict_json(odd)] == odd
    with pytest.raises(InputError, match=r"Text 2: .*surrogate"):
        list(run.predict(["a", "\ud800"]))
    with pytest.raises(TypeError, match="`texts`"):
        run.predict("one text")


def test_a_classifier_knows_good_from_bad():
    texts = ["배우들 연기가 정말 좋았다.", "지루하고 돈이 아까운 영화", ""]
    answers = list(load_tagger("sentiment-ko").predict_json(texts))
    assert [answer["label"] for answer in answers[:2]] == ["positive", "negative"]
    assert all(sum(a["probabilities"].values()) == pytest.approx(1) for a in answers)
    assert [answer["text"] for answer in answers] == texts


def test_names_agree_by_document(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("Austin won.\nMr. Austin lives in Austin.\n\nShe lives in Austin.\n")
    done = run_command("predict", "ner-en", path, "--by-document")
    assert done.stdout.splitlines()[1:] == [
        "Mr. [Austin PER] lives in [Austin PER].", "", "She lives in [Austin LOC].",
    ]  # fmt: skip
    done = run_command("predict", "ner-en", path, "--by-document", "--json")
    second = json.loads(done.stdout.splitlines()[1])
    assert [entity["probability"] is None for entity in second["entities"]] == [False, True]
    (tmp_path / "texts").mkdir()
    for name, line in (("1.txt", "Michael Jordan won.\n"), ("2.txt", "She lives in Jordan.\n")):
        (tmp_path / "texts" / name).write_text(line)
    done = run_command("predict", "ner-en", tmp_path / "texts", "--by-document")
    assert done.stdout.splitlines() == ["[Michael Jordan PER] won.", "She lives in [Jordan LOC]."]
    done = run_command("predict", "pos-en", path, "--by-document", expect=2)
    assert "ner" in done.stderr


def test_a_tagger_on_another_model_than_its_own_is_told(tmp_path):
    """As after a packaged model was replaced and its taggers were not made again."""
    shutil.copytree(PACKAGED_RUNS / "ner-en", tmp_path / "ner-en")
    metadata = read_metadata(tmp_path / "ner-en")
    right, metadata["bilm"]["model_hash"] = metadata["bilm"]["model_hash"], "0" * 64
    (tmp_path / "ner-en/task.json").write_text(json.dumps(metadata), encoding="utf-8")
    with pytest.raises(FormatError, match=rf"/models/en .*{right[:12]}.*--model"):
        elmokit.TaskRun.load(tmp_path / "ner-en")
