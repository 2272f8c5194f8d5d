import json
import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.web.api.routes import Metrics

from ....builders.embedding_models import WORDS, random_sentences, toy_model
from ....builders.live_server import served
from ....builders.task_models import trained_classifier

TEXTS = ["I sat by the bank.", "배 를 타고 갔다", "the the river"]
SENTENCES = [" ".join(words) for words in random_sentences(160, seed=5) if words]


@pytest.fixture(scope="module")
def embedder():
    return Embedder(toy_model(tokenizer=TokenizerConfig(name="simple")))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    toy_model().save(folder / "bilm")
    tasks = ("sentiment", "nli")
    return {task: trained_classifier(task, folder, folder / "bilm") for task in tasks}


@pytest.fixture(scope="module")
def server(embedder, runs):
    vocab = WordVocab(["<S>", "</S>", "<UNK>", *WORDS])
    with served(embedder, vocab=vocab, runs=runs, max_words=50, max_texts=8) as server:
        yield server


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def assert_close(answer, expected):
    assert np.abs(np.array(answer, dtype=np.float32) - expected).max() < 1e-6


class TestAnswers:
    def test_embed_is_pooled_and_normalized(self, server, embedder):
        expected = embedder.embed_sentences(TEXTS)
        for path in ("/embed", "/"):
            assert_close(server.post(path, {"inputs": TEXTS})[1], unit(expected))
        assert_close(server.post("/embed", {"inputs": TEXTS, "normalize": False})[1], expected)
        assert_close(server.post("/embed", {"inputs": TEXTS[0]})[1], unit(expected)[:1])

    def test_embed_all_has_a_vector_per_word(self, server, embedder):
        inputs = [TEXTS[0], ["배", "bank."]]
        _, answer = server.post("/embed_all", {"inputs": inputs})
        assert [len(one) for one in answer] == [6, 2]
        for vectors, expected in zip(answer, embedder.embed(inputs, layers="average"), strict=True):
            assert_close(vectors, expected)

    def test_tokens_have_places_and_ids_of_the_vocabulary(self, server):
        _, ((begin, *tokens, end),) = server.post("/tokenize", {"inputs": "I sat, Zoë."})
        assert [(one["text"], one["start"], one["stop"]) for one in tokens] == [
            ("I", 0, 1), ("sat", 2, 5), (",", 5, 6), ("Zoë", 7, 10), (".", 10, 11),
        ]  # fmt: skip
        assert [one["id"] for one in tokens] == [4, 5, 3, 3, 16]
        assert (begin["special"], tokens[0]["special"], end["text"]) == (True, False, "</S>")
        bare = {"inputs": ["I sat, Zoë."], "add_special_tokens": False}
        assert server.post("/tokenize", bare) == (200, [tokens])

    @pytest.mark.parametrize("task", ["sentiment", "nli"])
    def test_predictions_are_those_of_the_run(self, server, runs, task):
        texts = ["by the river", "I sat"] if task == "sentiment" else [["I sat", "by"], ["a", "b"]]
        expected = json.loads(json.dumps(list(runs[task].predict_json(texts))))
        status, answer = server.post(f"/predict/{task}", {"inputs": texts})
        assert (status, answer) == (200, expected)
        if task == "sentiment":
            status, answer = server.post("/predict/sentiment", {"inputs": texts[0]})
            assert answer["label"] == expected[0]["label"]
            assert answer["probability"] == pytest.approx(expected[0]["probability"], abs=1e-6)

    def test_info_health_metrics_and_models(self, server, embedder):
        status, _, info = server.ask("GET", "/info")
        assert (status, info["model_id"], info["max_input_length"]) == (200, "toy", 50)
        assert info["model_sha"] == embedder.metadata()["model_hash"]
        assert info["predict"]["sentiment"] == {"task": "sentiment", "labels": ["bad", "good"]}
        assert server.ask("GET", "/health")[0] == 200
        _, _, models = server.ask("GET", "/v1/models")
        assert [one["id"] for one in models["data"]] == ["toy"]
        before = server.metric('te_request_success{method="single"}')
        assert server.post("/embed", {"inputs": "I sat"})[0] == 200
        assert server.metric('te_request_success{method="single"}') == before + 1
        assert server.metric("te_queue_size") == 0
        assert server.metric("te_request_duration_count") >= before + 1

    def test_another_layer_pooling_and_state(self, embedder):
        with served(embedder, layers=1, pooling="max", normalize=False, state="warm") as other:
            _, answer = other.post("/embed", {"inputs": TEXTS})
        expected = embedder.embed_sentences(TEXTS, layers=1, pooling="max", state="warm")
        assert_close(answer, expected)


class TestTogether:
    def test_concurrent_requests_get_what_the_embedder_alone_gives(self, embedder):
        expected = {text: embedder.embed([text], layers="average")[0] for text in SENTENCES}
        with served(embedder, batch_tokens=200) as server:

            def ask(text):
                words = server.post("/embed_all", {"inputs": text})[1][0]
                pooled = server.post("/embed", {"inputs": [text], "normalize": False})[1][0]
                return words, pooled

            with ThreadPoolExecutor(16) as pool:
                answers = list(pool.map(ask, SENTENCES))
        for text, (words, pooled) in zip(SENTENCES, answers, strict=True):
            assert_close(words, expected[text])
            assert_close(pooled, expected[text].mean(axis=0))

    @pytest.mark.parametrize("kind", [RuntimeError, FormatError])
    def test_a_bug_is_a_500_that_says_nothing_and_the_server_goes_on(self, embedder, caplog, kind):
        with served(embedder) as server:
            compute = server.service._embedding.compute

            def broken(items):
                if any("bank" in words for words, _ in items):
                    raise kind(f"a secret {len(items)}")
                return compute(items)

            server.service._embedding.compute = broken
            status, answer = server.post("/v1/embeddings", {"input": "the bank", "model": "toy"})
            assert (status, answer["error"]["type"]) == (500, "server_error")
            assert "secret" not in str(answer)
            assert server.post("/embed", {"inputs": "I sat"})[0] == 200
        assert "a computation failed" in caplog.text
        assert "a secret 1" not in caplog.text

    def test_vectors_that_are_no_numbers_are_no_answer(self, embedder, monkeypatch):
        def broken(texts, **_):
            return [np.full((len(words), embedder.dim), np.nan, np.float32) for words in texts]

        monkeypatch.setattr(embedder, "embed", broken)
        with served(embedder) as server:
            for path in ("/embed", "/embed_all", "/v1/embeddings"):
                field = "input" if path.startswith("/v1") else "inputs"
                assert server.post(path, {field: "I sat", "model": "toy"})[0] == 500

    def test_totals_keep_their_digits(self):
        metrics = Metrics()
        metrics.add("words", 1_234_567)
        assert "words 1234567\n" in metrics.render(queue_size=0)


BAD = {
    "malformed": (b'{"inputs": ', 400),
    "not UTF-8": (b'{"inputs": "\xff\xfe"}', 400),
    "deep": (b"[" * 100_000, 400),
    "lone surrogate": (b'{"inputs": "a \\ud800 b"}', 400),
    "NUL": (b'{"inputs": "a \\u0000 b"}', 422),
    "dimensions": (b'{"inputs": "a", "dimensions": 3}', 422),
    "no texts": (b'{"inputs": []}', 422),
    "blank text": (b'{"inputs": " \\t "}', 422),
    "10,000 texts": (json.dumps({"inputs": ["a"] * 10_000}).encode(), 413),
    "too many words": (json.dumps({"inputs": "a " * 51}).encode(), 413),
    "10 MB": (json.dumps({"inputs": "a" * 10_000_000}).encode(), 413),
}


@pytest.mark.parametrize(("body", "status"), BAD.values(), ids=BAD)
def test_bad_input_is_an_error_in_the_dialect_of_the_route(server, body, status):
    found, answer = server.post("/embed", body)
    assert (found, set(answer)) == (status, {"error", "error_type"})
    assert answer["error_type"] == {422: "tokenizer"}.get(status, "validation")
    assert 10 < len(answer["error"]) < 300
    body = body.replace(b'"inputs":', b'"model": "toy", "input":')
    found, answer = server.post("/v1/embeddings", body)
    assert (found, set(answer["error"])) == (status, {"message", "type", "param", "code"})
    assert answer["error"]["type"] == "invalid_request_error"
    assert "`inputs" not in answer["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/embed", {"k": 1}, "`inputs`"),
        ("/embed", {"inputs": "a", "truncation_direction": "left"}, "right.*'left'"),
        ("/embed", {"inputs": ["a", ""]}, r"`inputs\[1\]`"),
        ("/embed_all", {"inputs": "a", "normalize": False}, "`normalize`"),
        ("/v1/embeddings", {"input": [[1]]}, "`input`.*langchain"),
        ("/v1/embeddings", {"input": "a", "model": "gpt"}, "'gpt'.*'toy'"),
        ("/predict/unknown", {"inputs": "a"}, "'unknown'.*sentiment, nli"),
        ("/predict/sentiment", {"inputs": [["I", ["sat"]]]}, r"`inputs\[0\]`"),
        ("/predict/sentiment", {"inputs": [["a"] * 51]}, r"`inputs\[0\]`.*51.*50"),
        ("/predict/nli", {"inputs": [*["a\tb"] * 7, ["one text"]]}, r"`inputs\[7\]`"),
    ],
)
def test_errors_name_the_field_and_what_it_may_be(server, path, body, words):
    status, answer = server.post(path, body)
    assert 400 <= status < 500
    message = answer["error"]["message"] if "v1" in path else answer["error"]
    assert re.search(words, message), message


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/embed", {"model": "any", "raw_scores": True, "": 1}),
        ("/embed", {"truncate": None, "normalize": None, "prompt_name": None}),
        ("/tokenize", {"prompt": None, "add_special_tokens": None}),
        ("/v1/embeddings", {"model": None, "dimensions": None, "encoding_format": None}),
        ("/v1/embeddings", {"input_type": "query", "truncate": "END", "user": None}),
        ("/embeddings", {"model": "toy"}),
    ],
)
def test_fields_of_other_servers_are_ignored_and_null_is_no_value(server, path, given):
    name = "input" if path.endswith("embeddings") else "inputs"
    assert server.post(path, {name: "a", **given})[0] == 200


def test_a_text_is_cut_at_its_limits_and_not_within_a_syllable(server, embedder):
    syllables = "갔다" * 300
    for text, beginning in (
        ("I sat " * 100, "I sat " * 25),  # 50 words
        (f"{'a b ' * 5}{'c' * 900}", f"{'a b ' * 5}{'c' * 780}"),
        (unicodedata.normalize("NFD", syllables), syllables),  # 600 characters when composed
    ):
        status, answer = server.post("/embed_all", {"inputs": text, "truncate": True})
        (expected,) = embedder.embed([beginning], layers="average")
        assert status == 200
        assert_close(answer[0], expected)
