"""The page over HTTP, and the files that a copy of it consists of."""

import json
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.web.page import export
from elmokit.web.page.export import page_files
from elmokit.web.page.models import STATIC

from ....builders.live_page import served_page
from ....builders.training_models import random_sentences, toy_model

WORDS = next(sentence for sentence in random_sentences(20) if len(sentence) > 3)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    toy_model().save(folder / "toy")
    with served_page([folder / "toy"]) as page:
        yield page


def test_files_have_their_types_and_a_strict_policy(page):
    for path, kind in (
        ("/", "text/html"),
        ("/compute/client.js", "text/javascript"),
        ("/explorer.json", "application/json"),
        ("/tokenizer-rules.json", "application/json"),
        ("/models/toy/model.safetensors", "application/octet-stream"),
        ("/models/toy/warm.safetensors", "application/octet-stream"),
        ("/models/toy/vocab.txt", "text/plain"),
    ):
        status, headers, content = page.ask("GET", path)
        assert (status, len(content) > 0) == (200, True)
        assert headers["Content-Type"].startswith(kind)
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    ["/../routes.py", "/%2e%2e/routes.py", "/..%2froutes.py", "//etc/passwd", "/models/toy/x",
     "/compute", "/a%00b", "/models/toy/../../../calls.py"],
)  # fmt: skip
def test_nothing_else_is_sent(page, path):
    status, _, answer = page.ask("GET", path)
    assert (status, set(answer)) == (404, {"error", "error_type"})


def test_calls_answer_as_the_library(page):
    model = page.calls._models["toy"]
    asked = {"model": "toy", "words": WORDS}
    status, rows = page.post("/api/surprisal", {**asked, "top": 2})
    expected = list(elmokit.surprisal(model, [WORDS], top=2, precision="fp32"))
    assert status == 200
    assert [row["forward"] for row in rows] == pytest.approx([row.forward for row in expected])
    _, numbers = page.post("/api/trace", {**asked, "index": 1, "weights": None, "gamma": 1})
    traced = elmokit.trace(model, WORDS, word=1)
    np.testing.assert_allclose(numbers["mixture"], traced.mixture, atol=1e-5)
    _, tokens = page.post("/api/tokenize", {"model": "toy", "text": " ".join(WORDS)})
    assert [token["text"] for token in tokens["sentences"][0]] == WORDS
    _, words = page.post("/api/predict_word", {**asked, "index": 0, "insert": True, "top": 3})
    assert len(words["both"]["top"]) == 3
    _, content = page.post("/api/layers", asked)
    length = int.from_bytes(content[:4], "little")
    shape = json.loads(content[4 : 4 + length])["shape"]
    numbers = np.frombuffer(content[4 + -(-length // 4) * 4 :], "<f4").reshape(shape)
    (layers,) = elmokit.Embedder(model).embed([WORDS])
    np.testing.assert_allclose(numbers, layers, atol=1e-5)
    (layers,) = elmokit.Embedder(model).embed([WORDS])
    np.testing.assert_allclose(numbers, layers, atol=1e-5)


def test_a_package_of_links_serves_its_files(tmp_path, monkeypatch):
    """As some package managers install: each file is a link."""
    for path in filter(Path.is_file, STATIC.rglob("*")):
        (tmp_path / path.relative_to(STATIC)).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.relative_to(STATIC)).symlink_to(path)
    expected = page_files({"models": []}, [])
    monkeypatch.setattr(export, "STATIC", tmp_path)
    files = page_files({"models": []}, [])
    assert files.keys() == expected.keys()
    assert files["app/main.js"]() == (STATIC / "app/main.js").read_bytes()
