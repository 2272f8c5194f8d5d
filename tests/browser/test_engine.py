"""The engine in the page against Python with the same rounded weights, in a real browser."""

import json
import re

import numpy as np
import pytest

import elmokit
from elmokit.web.page.models import STATIC

from ..builders.browser_calls import (
    CHANGED_MINDS,
    ERROR,
    TEXTS,
    caller,
    check_alike,
    check_tokens,
    load_exported,
    text_units,
)

EN = [
    "I sat by the bank of the river .",
    "Mr. Smith doesn't think it's 10:30am — “really”, he said, e.g. in the U.S.",
    "Unbelievably-long-words-like-pneumonoultramicroscopicsilicovolcanoconiosis🙂 exist…",
]
KO = ["나 는 밥 을 먹 었 다 .", "배 를 타 고 섬 에 가 었 다 .", "한국어 는 😀 어렵 다 ."]


@pytest.fixture(scope="module")
def models(exported_folder):
    return {name: load_exported(exported_folder / "models" / name) for name in ("en", "ko")}


@pytest.fixture(scope="module")
def call(shared_browser_page, exported_site):
    return caller(shared_browser_page, exported_site)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [*(("en", s) for s in [*EN, "an empty \u200c word"]), *(("ko", s) for s in KO)],
)
def test_layers_equal_those_of_the_embedder(call, models, name, sentence):
    words = sentence.split()
    embedder = elmokit.Embedder(models[name])
    for state in ("reset", "warm"):
        (expected,) = embedder.embed([words], state=state)
        found = call(name, "layers", words, {"state": state})
        assert found["shape"] == list(expected.shape)
        layers = np.array(found["layers"], np.float32).reshape(expected.shape)
        np.testing.assert_allclose(layers, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize(("name", "sentence"), [("en", EN[0]), ("en", EN[2]), ("ko", KO[2])])
def test_surprisal_equals_that_of_python(call, models, name, sentence):
    words = sentence.split()
    expected = elmokit.surprisal(models[name], [words], top=5, precision="fp32", unknown="unk")
    check_alike(call(name, "surprisal", words, {"top": 5}), list(expected), error=1e-3)


@pytest.mark.parametrize("options", [{}, {"insert": True}], ids=["hidden", "inserted"])
@pytest.mark.parametrize(("name", "sentence"), [("en", EN[0]), ("ko", KO[0])])
def test_predictions_equal_those_of_python(call, models, name, sentence, options):
    words = sentence.split()
    for index in (0, len(words) - 1 + len(options)):
        expected = elmokit.predict_word(models[name], words, index=index, top=3, **options)
        found = call(name, "predictWord", words, index, {"top": 3, **options})
        check_alike(found, expected, error=1e-3)


@pytest.mark.parametrize(("name", "sentence", "index"), [("en", EN[2], 0), ("ko", KO[0], 2)])
def test_a_trace_equals_that_of_python(call, models, name, sentence, index):
    words = sentence.split()
    expected = elmokit.trace(models[name], words, word=index, gamma=0.5)
    found = call(name, "trace", words, index, {"gamma": 0.5})
    keys = ("words", "index", "word", "raw_bytes", "char_ids", "highways", "mixture")
    check_alike(
        {key: found[key] for key in keys}, {key: getattr(expected, key) for key in keys}, error=1e-4
    )
    for one, other in zip(found["filters"], expected.filters, strict=True):
        np.testing.assert_allclose(one["values"], other.values, atol=1e-4)
        assert np.mean(one["positions"] == other.positions) > 0.95  # near-ties may differ
        same = [a == b for a, b in zip(one["positions"], other.positions, strict=True)]
        for is_same, text, window in zip(same, one["windows"], other.windows, strict=True):
            assert not is_same or text == window
    np.testing.assert_allclose(found["norms"], [one.norms for one in expected.layers], atol=1e-3)


def test_tokens_of_english_equal_those_of_python(call, models):
    for text in [*EN, *TEXTS]:
        check_tokens(call("en", "tokenize", text), models["en"], text)


def test_korean_is_split_nearly_as_by_kiwi_and_the_catalog_says_so(call, models):
    pytest.importorskip("kiwipiepy", reason='no Kiwi: pip install "elmokit[ko]"')
    pack = json.loads((STATIC / "packs/senses.ko.json").read_text(encoding="utf-8"))
    same = total = 0
    for text in (entry["sentences"][0]["text"] for entry in pack["entries"]):
        tokens = call("ko", "tokenize", text)["sentences"][0]
        for match in re.finditer(r"\S+", text):
            own = [one["text"] for one in tokens if match.start() <= one["start"] < match.end()]
            expected = [one.text for one in elmokit.tokenize(models["ko"], text).tokens
                        if match.start() <= one.start < match.end()]  # fmt: skip
            same, total = same + (own == expected), total + 1
    assert same / total >= 0.95
    entries = {entry["name"]: entry for entry in call("ko", "models")}
    assert [entries[name]["tokenizer"] for name in ("en", "ko")] == ["exact", "close"]


def test_any_text_is_split_into_words_in_their_places(call):
    for text in (*TEXTS, "밥 을  먹 었 다 .", "ㅋㅋㅋ 뷁뀱쨟은 ２０２６년 뭐임?!", "가" * 300):
        for sentence in call("ko", "tokenize", text)["sentences"]:
            for token in sentence:
                assert token["text"], text
                assert token["start"] is None or token["raw"] == text_units(text, token), text


@pytest.mark.parametrize(
    ("name", "method", "args", "code"),
    [
        ("xx", "models", [], "unknown-model"),
        ("en", "tokenize", ["a\0b"], "bad-input"),
        ("en", "trace", [["a"], 1], "bad-input"),
        ("en", "predictWord", [["a"], 1], "bad-input"),
        ("en", "layers", [["a"] * 5001], "too-long"),
        ("en", "surprisal", [["a"] * 101, {"top": 1000}], "too-long"),
        ("en", "run", ["x"], "not-available"),
    ],
)
def test_bad_input_is_told_by_a_code(call, name, method, args, code):
    assert call(name, method, *args, code=ERROR)[:2] == ["ComputeError", code]


def test_no_words_are_no_rows(call):
    assert call("en", "surprisal", []) == []
    assert call("en", "layers", [])["shape"] == [3, 0, 384]


def test_what_is_computed_is_of_the_model_chosen_last(call, shared_browser_page, exported_site):
    page = shared_browser_page(exported_site + "blank.html")
    expected = call("ko", "surprisal", ["배"], {"top": 3})[0]["forward_top"]
    late, name, top = page.evaluate(CHANGED_MINDS, ["en", "ko", ["배"]])
    assert late == "no-model", "not what the model that was loading says"
    assert (name, top) == ("ko", [one["word"] for one in expected])
