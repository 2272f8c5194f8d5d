"""Answers to calls, and the codes of errors."""

import json
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.training.curves import check_run_dir
from elmokit.web.page import export
from elmokit.web.page.calls import MAX_TOP, MAX_WORDS, Calls
from elmokit.web.page.export import page_files
from elmokit.web.page.models import STATIC, ExploredModel
from elmokit.web.server import RequestError

from ....builders.live_server import served_page
from ....builders.training_models import lexicon_model, random_sentences, toy_model

WORDS = next(sentence for sentence in random_sentences(20) if len(sentence) > 3)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("called")
    runs = {name: folder / name for name in ("run", "fresh", "broken")}
    for directory in runs.values():
        directory.mkdir()
    rows = [json.dumps({"step": step, "loss": 5 / step}) for step in range(1, 10_001)]
    (runs["run"] / "metrics.jsonl").write_text("\n".join([*rows, '{"step": 100']))  # being written
    (runs["fresh"] / ".elmokit-run").touch()
    (runs["broken"] / "metrics.jsonl").write_text('{"step": 1}\nx\n{"step": 3}\n')
    for directory in runs.values():
        check_run_dir(directory)
    models = {"toy": toy_model(), "bare": toy_model().encoder(), "mute": toy_model()}
    models["mute"].word_vocab = None
    models["lists"] = lexicon_model()
    explored = [ExploredModel(name, folder, model.stored()) for name, model in models.items()]
    return Calls(explored, runs=runs)


def ask(calls, method, **given):
    return json.loads(calls.answer(method, json.dumps(given).encode()))


def test_a_run_is_read_while_it_is_written_and_from_its_beginning(calls):
    found = ask(calls, "run", name="run")
    assert found["is_running"]
    assert 1000 < len(found["rows"]) <= 4001
    assert (found["rows"][0]["step"], found["rows"][-1]["step"]) == (1, 10_000)
    found = ask(calls, "run", name="fresh")
    assert (found["rows"], found["is_running"]) == ([], True)


@pytest.mark.parametrize(
    ("method", "model", "given", "code"),
    [
        ("open", "none", {}, "unknown-model"),
        ("run", "", {"name": "none"}, "unknown-run"),
        ("predict", "", {"task": "none", "text": "a"}, "unknown-task"),
        ("run", "", {"name": "broken"}, "damaged-run"),
        ("exec", "", {}, "not-available"),
        ("surprisal", "bare", {"words": ["a"]}, "no-softmax"),
        ("surprisal", "mute", {"words": ["a"]}, "no-vocabulary"),
        ("trace", "lists", {"words": ["a"], "index": 0}, "no-trace"),
        ("trace", "toy", {"words": ["a"], "index": 7}, "bad-input"),
        ("trace", "toy", {"words": ["a"], "weights": ["x"]}, "bad-input"),
        ("trace", "toy", {"words": ["a"], "gamma": float("nan")}, "bad-input"),
        ("tokenize", "toy", {"text": "a\0"}, "bad-input"),
        ("tokenize", "toy", {"text": "half \ud800"}, "bad-input"),
        ("tokenize", "toy", {"text": "x" * 200_001}, "too-long"),
        ("layers", "toy", {"words": ["a"] * (MAX_WORDS + 1)}, "too-long"),
        ("layers", "toy", {"words": ["a"], "state": "cold"}, "bad-input"),
        ("surprisal", "toy", {"words": ["a"], "top": MAX_TOP + 1}, "bad-input"),
        ("surprisal", "toy", {"words": ["a"] * 101, "top": MAX_TOP}, "too-long"),
    ],
)
def test_bad_calls_get_a_code(calls, method, model, given, code):
    with pytest.raises(RequestError) as refused:
        ask(calls, method, model=model, **given)
    assert refused.value.code == code


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
