"""Answers to calls, and the codes of errors."""

import json

import pytest

from elmokit.errors import InputError, MissingExtraError
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.training.curves import check_run_dir
from elmokit.web.page.calls import CallError, Calls
from elmokit.web.page.catalog import MAX_TOP, MAX_WORDS, ExploredModel
from elmokit.web.page.corpus_index import CorpusIndex
from elmokit.weights.model_dir import PretrainedBiLM

from ....builders.training_models import lexicon_model, random_sentences, toy_model

WORDS = next(one for one in random_sentences(20) if len(one) > 3)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("called")
    runs = {name: folder / name for name in ("run", "fresh", "broken")}
    for one in runs.values():
        one.mkdir()
    rows = [json.dumps({"step": step, "loss": 5 / step}) for step in range(1, 10_001)]
    (runs["run"] / "metrics.jsonl").write_text("\n".join([*rows, '{"step": 100']))  # being written
    (runs["run"] / "ngram.json").write_text('{"model": "Kneser-Ney", "mean": 99.5, "forward": 1}')
    (runs["fresh"] / ".elmokit-run").touch()
    (runs["broken"] / "metrics.jsonl").write_text('{"step": 1}\nx\n{"step": 3}\n')
    for one in runs.values():
        check_run_dir(one)
    text = folder / "corpus.txt"
    text.write_text("\n".join(map(" ".join, random_sentences(20))) + "\n", encoding="utf-8")
    models = {"toy": toy_model(), "bare": toy_model().encoder(), "mute": toy_model()}
    models["mute"].word_vocab = None
    models["lists"] = lexicon_model()
    explored = [ExploredModel(name, folder, model) for name, model in models.items()]
    return Calls(explored, runs=runs, corpus=[text])


def test_a_run_is_read_while_it_is_written(calls):
    found = calls.answer("run", {"name": "run"})
    assert found["is_running"]
    assert 1000 < len(found["rows"]) <= 4001
    assert (found["rows"][0]["step"], found["rows"][-1]["step"]) == (1, 10_000)
    assert found["ngram"] == {"name": "Kneser-Ney", "perplexity": 99.5}


def test_a_run_that_has_just_begun_has_no_rows(calls):
    found = calls.answer("run", {"name": "fresh"})
    assert (found["rows"], found["is_running"], found["ngram"]) == ([], True, None)


def test_a_corpus_that_cannot_be_read_is_told_each_time_and_read_again(calls, tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"\xff\xfe not a text\n" * 300)
    calls = Calls([ExploredModel("toy", tmp_path, calls._models["toy"])], corpus=[path])
    given = {"model": "toy", "words": WORDS, "index": 1}
    for _ in range(2):
        with pytest.raises(CallError, match=r"corpus\.txt") as found:
            ask_until_read(calls, given)
        assert found.value.code == "bad-corpus"
    path.write_text(" ".join(WORDS) + "\n" + " ".join(reversed(WORDS)) + "\n", encoding="utf-8")
    assert ask_until_read(calls, given).num_sentences == 2


def test_no_error_of_the_reading_thread_is_lost(calls, tmp_path, monkeypatch):
    def fail(self):
        raise MemoryError("no room")

    monkeypatch.setattr(CorpusIndex, "_index", fail)
    calls = Calls([ExploredModel("toy", tmp_path, calls._models["toy"])], corpus=[tmp_path])
    with pytest.raises(CallError, match="MemoryError: no room"):
        ask_until_read(calls, {"model": "toy", "words": WORDS, "index": 1})


def ask_until_read(calls, given):
    while True:
        try:
            return calls.answer("neighbors", given)
        except CallError as error:
            if error.code != "not-yet":
                raise


@pytest.mark.parametrize(
    ("method", "given", "code"),
    [
        ("surprisal", {"model": "bare", "words": ["a"]}, "no-softmax"),
        ("predict_word", {"model": "bare", "words": ["a"], "index": 0}, "no-softmax"),
        ("open", {"model": "none"}, "unknown-model"),
        ("run", {"name": "none"}, "unknown-run"),
        ("predict", {"task": "none", "text": "a"}, "unknown-task"),
        ("predict", {"text": "a"}, "unknown-task"),
        ("run", {"name": "broken"}, "damaged-run"),
        ("neighbors", {"model": "toy", "words": ["a"], "index": 1}, "bad-input"),
        ("neighbors", {"model": "toy", "words": ["a"], "index": 0, "layer": 9}, "bad-input"),
        ("neighbors", {"model": "toy", "words": ["a"], "index": 0, "layer": None}, "bad-input"),
        ("exec", {}, "not-available"),
        ("trace", {"model": "toy", "words": ["a"], "index": 7}, "bad-input"),
        ("trace", {"model": "lists", "words": ["a"], "index": 0}, "no-trace"),
        ("trace", {"model": "toy", "words": ["a"], "index": 0, "weights": ["x"]}, "bad-input"),
        ("trace", {"model": "toy", "words": "ab", "index": 0}, "bad-input"),
        ("tokenize", {"model": "toy", "text": "a\0"}, "bad-input"),
        ("tokenize", {"model": "toy", "text": 3}, "bad-input"),
        ("trace", {"model": "toy", "words": ["a"], "index": 0, "weights": 3}, "bad-input"),
        ("trace", {"model": "toy", "words": ["a"], "index": 0, "gamma": 1e300}, "bad-input"),
        ("trace", {"model": "toy", "words": ["a"], "index": 0, "gamma": float("nan")}, "bad-input"),
        ("tokenize", {"model": "toy", "text": "x" * 300_000}, "too-long"),
        ("tokenize", {"model": "toy", "text": "x", "words": ["x" * 300_000]}, "too-long"),
        ("layers", {"model": "toy", "words": ["a"] * (MAX_WORDS + 1)}, "too-long"),
        ("layers", {"model": "toy", "words": ["a"], "state": "cold"}, "bad-input"),
        ("surprisal", {"model": "toy", "words": ["a"], "top": -1}, "bad-input"),
        ("surprisal", {"model": "toy", "words": ["a"], "top": MAX_TOP + 1}, "bad-input"),
        ("surprisal", {"model": "toy", "words": ["a"] * 101, "top": MAX_TOP}, "too-long"),
        ("surprisal", {"model": "mute", "words": ["a"]}, "no-vocabulary"),
        ("surprisal", {"model": "toy", "words": ["a"], "state": []}, "bad-input"),
    ],
)
def test_bad_calls_get_a_code(calls, method, given, code):
    with pytest.raises(CallError) as refused:
        calls.answer(method, given)
    assert refused.value.code == code


def test_without_its_tokenizer_a_model_reads_what_stands_between_spaces(tmp_path, monkeypatch):
    def missing(self, sentence):
        raise MissingExtraError("pysbd", extra="en")

    monkeypatch.setattr(PretrainedBiLM, "tokenize", missing)
    model = toy_model(tokenizer=TokenizerConfig(name="english"))
    calls = Calls([ExploredModel("toy", tmp_path, model)])
    calls.load_tokenizers()
    found = calls.answer("tokenize", {"model": "toy", "text": "It was dark. So  what?"})
    assert [token.text for token in found.tokens] == ["It", "was", "dark.", "So", "what?"]


def test_a_package_that_the_server_lacks_is_no_bad_input(calls, monkeypatch):
    def refuse(given):
        raise MissingExtraError("kiwipiepy", extra="ko")

    monkeypatch.setitem(calls._methods, "predict", refuse)
    with pytest.raises(CallError, match="kiwipiepy") as refused:
        calls.answer("predict", {"task": "x", "text": "a"})
    assert refused.value.code == "missing-extra"


@pytest.mark.parametrize("kind", [TypeError, ValueError])
def test_a_bug_is_no_bad_input(calls, monkeypatch, kind):
    def broken(given):
        raise kind("broken")

    monkeypatch.setitem(calls._methods, "open", broken)
    with pytest.raises(kind, match="broken"):
        calls.answer("open", {"model": "toy"})

    def refuse(given):
        raise InputError("refused")

    monkeypatch.setitem(calls._methods, "open", refuse)
    with pytest.raises(CallError, match="refused") as refused:
        calls.answer("open", {"model": "toy"})
    assert refused.value.code == "bad-input"


def test_errors_name_what_there_is_none_of(calls):
    for method, given, words in (
        ("open", {"model": "x"}, "no model 'x'; available: toy, bare, mute"),
        ("run", {"name": "x"}, "no run 'x'; available: run, fresh, broken"),
        ("predict", {"task": "x", "text": "a"}, "no task 'x'; available: none"),
    ):
        with pytest.raises(CallError, match=words):
            calls.answer(method, given)


def test_what_is_made_of_a_model_is_kept(calls, monkeypatch):
    scorer = calls._scorer({"model": "toy", "state": "warm"})
    assert calls._scorer({"model": "toy"}) is scorer
    layers = calls.answer("layers", {"model": "toy", "words": WORDS})
    monkeypatch.setattr("elmokit.web.page.calls.Embedder", None)
    assert calls.answer("layers", {"model": "toy", "words": WORDS}) == layers


def test_many_likeliest_words_of_few_words_and_few_of_many_are_named(calls):
    top = len(calls._models["toy"].word_vocab)
    (first, *_) = calls.answer("surprisal", {"model": "toy", "words": WORDS, "top": top})
    assert len(first.forward_top) == top
    given = {"model": "toy", "words": ["a"] * MAX_WORDS, "index": 0, "top": top}
    assert len(calls.answer("predict_word", given).both.top) == top
    assert len(calls.answer("surprisal", given | {"top": 10})) == MAX_WORDS + 1
