"""Training from Python gives what the commands give."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.cli.options import as_settings
from elmokit.learn import finetune, pretrain, train

from ..builders.command_line import elmokit as elmokit_command

LINES = [f"The {noun} sat by the bank of the river ." for noun in ("cat", "dog", "king")] * 40
SETTINGS = {"train.batch_size": 4, "train.window": 8}


def test_texts_become_a_model_that_goes_on_learning(tmp_path):
    corpus, held_out = tmp_path / "corpus.txt", tmp_path / "valid.txt"
    corpus.write_text("\n".join(LINES), encoding="utf-8")
    held_out.write_text("\n".join(LINES[:5]), encoding="utf-8")
    named = {"preset": "toy", "epochs": 1, "valid": [held_out]}
    model = pretrain(corpus, tmp_path / "model", **named)
    assert elmokit.perplexity(tmp_path / "model", LINES[:5]).mean > 1
    assert model.word_vocab is not None
    assert "river" in model.word_vocab
    tuned = finetune(tmp_path / "model", [str(corpus)], tmp_path / "tuned", epochs=1)
    assert tuned.model_hash() != model.model_hash()
    again = pretrain(corpus, tmp_path / "model", **named, resume=True)
    assert again.model_hash() == model.model_hash()
    with pytest.raises(FileExistsError):
        pretrain(corpus, tmp_path / "model", **named)


def test_none_switches_a_setting_off(tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(LINES), encoding="utf-8")
    settings = {"optimizer.clip_norm": None, "vocab.max_size": None}
    pretrain(corpus, tmp_path / "model", preset="toy", tokens=400, settings=settings)
    config = json.loads((tmp_path / "model/run.json").read_text())["config"]
    assert config["optimizer"]["clip_norm"] is None
    assert config["vocab"]["max_size"] is None


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.float32(0.5), "0.5"),
        (np.array([1, 2]), "[1, 2]"),
        (Path("a 가"), '"a 가"'),
        (None, "none"),
    ],
)
def test_values_of_python_become_settings(value, told):
    assert as_settings({"a.b": value}) == [f"a.b={told}"]


def test_a_tilde_is_the_home_everywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "corpus.txt").write_text("\n".join(LINES), encoding="utf-8")
    pretrain("~/corpus.txt", "~/model", preset="toy", tokens=400)
    assert (tmp_path / "model/config.json").exists()
    elmokit_command(
        "pretrain", tmp_path / "corpus.txt", "--output=~/b", "--preset=toy", "--tokens=400"
    )
    assert (tmp_path / "b/config.json").exists()


def test_training_runs_outside_the_main_thread(tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(LINES), encoding="utf-8")
    with ThreadPoolExecutor(1) as pool:
        model = pool.submit(pretrain, corpus, tmp_path / "model", preset="toy", tokens=400).result()
    assert model.word_vocab is not None


def test_a_task_is_trained_and_loaded(tmp_path):
    rows = "".join(f"{name}\tB-PER\nsat\tO\n.\tO\n\n" for name in ("Ada", "Minji", "Kim"))
    for split in ("train", "dev"):
        (tmp_path / f"{split}.conll").write_text(rows, encoding="utf-8")
    run = train("ner", tmp_path, tmp_path / "run", embeddings="none", epochs=1)
    assert run.predict(["Ada sat ."])
