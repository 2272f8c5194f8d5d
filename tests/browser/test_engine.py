"""The engine in the page against Python with the same rounded weights, in a real browser."""

import re

import numpy as np
import pytest

from ..builders.browser_calls import (
    CHANGED_MINDS,
    ERROR,
    TEXTS,
    caller,
    check_tokens,
    load_exported,
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


def words_of(sentence):
    return sentence.split()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [*(("en", s) for s in [*EN, "an empty \u200c word"]), *(("ko", s) for s in KO)],
)
def test_layers_equal_those_of_the_embedder(call, models, name, sentence):
    import elmokit

    words = words_of(sentence)
    embedder = elmokit.Embedder(models[name])
    for state in ("reset", "warm"):
        (expected,) = embedder.embed([words], state=state)
        found = call(name, "layers", words, {"state": state})
        assert found["shape"] == list(expected.shape)
        layers = np.array(found["layers"], np.float32).reshape(expected.shape)
        np.testing.assert_allclose(layers, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize(("name", "sentence"), [("en", EN[0]), ("en", EN[2]), ("ko", KO[2])])
def test_surprisal_equals_that_of_python(call, models, name, sentence):
    import elmokit

    words = words_of(sentence)
    expected = list(
        elmokit.surprisal(models[name], [words], top=5, precision="fp32", unknown="unk")
    )
    found = call(name, "surprisal", words, {"top": 5})
    assert [row["word"] for row in found] == [row.word for row in expected]
    for row, other in zip(found, expected, strict=True):
        assert set(row) == set(other.__slots__)
        assert (row["is_unknown"], row["spelling"]) == (other.is_unknown, other.spelling)
        for column in ("forward", "backward", "mean", "forward_entropy", "backward_entropy"):
            assert row[column] == pytest.approx(getattr(other, column), abs=1e-3), column
        for way in ("forward", "backward"):
            rank = getattr(other, f"{way}_rank")
            assert abs(row[f"{way}_rank"] - rank) <= 1 + rank / 1000
            shares = [one["probability"] for one in row[f"{way}_top"]]
            assert shares == pytest.approx(
                [one.probability for one in getattr(other, f"{way}_top")], abs=1e-4
            )


@pytest.mark.parametrize("options", [{}, {"insert": True}], ids=["hidden", "inserted"])
@pytest.mark.parametrize(("name", "sentence"), [("en", EN[0]), ("ko", KO[0])])
def test_predictions_equal_those_of_python(call, models, name, sentence, options):
    import elmokit

    words = words_of(sentence)
    for index in (0, len(words) - 1 + len(options)):
        expected = elmokit.predict_word(models[name], words, index=index, top=3, **options)
        found = call(name, "predictWord", words, index, {"top": 3, **options})
        assert set(found) == set(expected.__slots__)
        assert (found["word"], found["is_unknown"]) == (expected.word, expected.is_unknown)
        for way in ("forward", "backward", "both"):
            one, other = found[way], getattr(expected, way)
            assert one["entropy"] == pytest.approx(other.entropy, abs=1e-3)
            assert [top["word"] for top in one["top"]] == [top.word for top in other.top]
            assert [top["probability"] for top in one["top"]] == pytest.approx(
                [top.probability for top in other.top], abs=1e-4
            )
            assert (one["rank"] is None) == (other.rank is None) == bool(options)
            if other.probability is not None:
                assert one["probability"] == pytest.approx(other.probability, abs=1e-4)


@pytest.mark.parametrize(("name", "sentence", "index"), [("en", EN[2], 0), ("ko", KO[0], 2)])
def test_a_trace_equals_that_of_python(call, models, name, sentence, index):
    import elmokit

    words = words_of(sentence)
    expected = elmokit.trace(models[name], words, word=index, gamma=0.5)
    found = call(name, "trace", words, index, {"gamma": 0.5})
    for key in ("words", "index", "word", "raw_bytes", "char_ids"):
        value = getattr(expected, key)
        assert found[key] == (list(value) if isinstance(value, tuple) else value)
    for one, other in zip(found["filters"], expected.filters, strict=True):
        np.testing.assert_allclose(one["values"], other.values, atol=1e-4)
        assert np.mean(one["positions"] == other.positions) > 0.95  # near-ties may differ
        same = [a == b for a, b in zip(one["positions"], other.positions, strict=True)]
        for is_same, text, window in zip(same, one["windows"], other.windows, strict=True):
            assert not is_same or text == window
    for one, other in zip(found["highways"], expected.highways, strict=True):
        np.testing.assert_allclose(one["gates"], other.gates, atol=1e-4)
        np.testing.assert_allclose(one["output"], other.output, atol=1e-4)
    np.testing.assert_allclose(found["mixture"], expected.mixture, atol=1e-4)
    np.testing.assert_allclose(found["norms"], [one.norms for one in expected.layers], atol=1e-3)


def test_tokens_of_english_equal_those_of_python(call, models):
    for text in [*EN, *TEXTS]:
        check_tokens(call("en", "tokenize", text), models["en"], text)


KOREAN = """
어제 친구와 함께 영화를 봤다.
비가 와서 우산을 쓰고 학교에 갔어요.
이 식당은 음식이 맛있고 값도 싸다.
할머니께서 손자에게 옛날이야기를 들려주셨다.
내일 아침 일찍 일어나야 합니다.
버스를 놓쳐서 회사에 늦게 도착했다.
창문을 열었더니 시원한 바람이 들어왔다.
그는 감기에 걸려 병원에서 약을 받았다.
동생은 방에서 숙제를 하고 있다.
주말에는 가족들과 공원을 산책하려고 한다.
냉장고에 우유가 없어서 가게에 다녀왔다.
시험이 끝나면 여행을 가고 싶어요.
아이들이 운동장에서 축구를 하며 놀았다.
길을 몰라서 지나가는 사람에게 물어보았다.
전화를 받지 않아 문자를 남겼습니다.
커피를 너무 많이 마셔서 잠이 오지 않는다.
눈이 많이 내린 날이라 길이 미끄러웠다.
선생님은 학생들의 질문에 친절하게 대답하셨다.
새로 산 신발이 조금 커서 바꾸러 갔다.
강아지가 꼬리를 흔들며 주인을 반겼다.
"""


def text_units(text, token):
    units = text.encode("utf-16-le")
    return units[2 * token["start"] : 2 * token["end"]].decode("utf-16-le")


def test_korean_is_split_nearly_as_by_kiwi_and_the_catalog_says_so(call, models):
    import elmokit

    pytest.importorskip("kiwipiepy", reason='no Kiwi: pip install "elmokit[ko]"')
    same = total = 0
    for text in KOREAN.strip().splitlines():
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
