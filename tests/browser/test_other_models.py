"""Models of other kinds in the page, and those that the server computes."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import elmokit
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.web.page import models
from elmokit.weights.model_dir import PretrainedBiLM

from ..builders.browser_calls import BLANK, TEXTS, caller, check_alike, check_tokens
from ..builders.live_server import served_page
from ..builders.training_models import random_sentences, toy_model

WORDS = next(one for one in random_sentences(20) if len(one) > 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Toy models, by what is special about them."""
    folder = tmp_path_factory.mktemp("models")
    simple = TokenizerConfig(name="simple", version="2")
    toy_model(tokenizer=simple).save(folder / "plain")
    for storage in ("float16", "int8"):
        model = toy_model(tokenizer=simple)
        model.round_to(storage)
        model.save(folder / storage, dtype=storage)
    toy_model(word_input=True).save(folder / "words")
    toy_model().encoder().save(folder / "bare")
    return folder


NAMES = ("plain", "float16", "int8", "words", "bare")


@pytest.fixture(scope="module")
def call(shared_browser_page, serve_folder, folder, export):
    site = export([str(folder / name) for name in NAMES], weights="stored")
    return caller(shared_browser_page, serve_folder(site))


@pytest.fixture(scope="module")
def call_server(shared_browser_page, folder):
    """As if the models were too large for a browser."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "MAX_BROWSER_BYTES", 10)
        names = folder / "plain", folder / "bare"
        with served_page(names, more_files={"blank.html": BLANK}) as explorer:
            content = json.loads(explorer.files["explorer.json"]())
            assert [entry["compute"] for entry in content["models"]] == ["server", "server"]
            yield caller(shared_browser_page, explorer.url)


def check_layers(found, model):
    (expected,) = elmokit.Embedder(model).embed([WORDS])
    assert found["words"] == WORDS
    layers = np.array(found["layers"], np.float32).reshape(found["shape"])
    np.testing.assert_allclose(layers, expected, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_model_has_the_layers_of_python(call, folder, name):
    check_layers(call(name, "layers", WORDS), elmokit.load_model(folder / name))


def test_tokens_in_plain_form_equal_those_of_python(call, folder):
    model = elmokit.load_model(folder / "plain")
    for text in TEXTS:
        check_tokens(call("plain", "tokenize", text), model, text)


def test_a_server_answers_through_the_same_interface(call, call_server, folder):
    model = elmokit.load_model(folder / "plain")
    check_layers(call_server("plain", "layers", WORDS), model)
    text = "I 👍 cannot sit “here” ."
    check_tokens(call_server("plain", "tokenize", text), model, text)
    for method, args in (
        ("surprisal", [WORDS, {"top": 2}]),
        ("trace", [WORDS, 1]),
        ("predictWord", [WORDS, 1, {"top": 3}]),
    ):
        here, there = call("plain", method, *args), call_server("plain", method, *args)
        check_alike(here, there, error=1e-4)


def test_a_model_without_highways_has_no_such_part(browser_page, folder, show):
    plain = toy_model(tokenizer=TokenizerConfig(name="simple", version="2"))
    config = replace(plain.config, char_cnn=replace(plain.config.char_cnn, num_highway=0))
    model = PretrainedBiLM(
        config, word_vocab=plain.word_vocab, softmax_config=plain.softmax_config,
        tokenizer=plain.tokenizer,
    )  # fmt: skip
    model.reset_parameters(torch.Generator().manual_seed(0))
    model.save(folder / "flat")
    with served_page([folder / "flat"]) as explorer:
        page = browser_page(f"{explorer.url}#lang=en&text=a+light+bag&word=1")
        show(page, "follow", ".flow .part")
        parts = page.locator(".flow .part button")
        controlled = [part.get_attribute("aria-controls") for part in parts.all()]
        page.close()  # before the server: the page still asks
    assert {"follow-filters", "follow-projection"} < set(controlled)
    assert "follow-highway" not in controlled
