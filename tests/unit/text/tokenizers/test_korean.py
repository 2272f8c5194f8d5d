import pytest

from elmokit.text.tokenizers.korean import KoreanTokenizer


@pytest.fixture(scope="module")
def tokenizer():
    pytest.importorskip("kiwipiepy")
    return KoreanTokenizer()


def test_contracted_forms_are_undone(tokenizer):
    assert " ".join(tokenizer.tokenize("나는 학교에 갔다.")) == "나 는 학교 에 가 었 다 ."
    assert tokenizer.tokenize("예쁜 꽃") == ["예쁘", "ㄴ", "꽃"]


def test_the_batch_path_gives_the_same(tokenizer, monkeypatch):
    monkeypatch.setattr("elmokit.text.tokenizers.korean._TEXTS_A_BATCH", 4)
    texts = ["나는 갔다. 너도 갔다.", "", "\n", "눈이 온다\n비도 온다"] * 3
    assert list(tokenizer.sentences_batch(iter(texts))) == [tokenizer.sentences(t) for t in texts]
    assert list(tokenizer.sentences_batch([])) == []


def test_words_with_old_hangul_stay_whole(tokenizer):
    text = "😀 나랏말ᄊᆞ미 ᄒᆞᆫ글, 책을 읽었다. 👍 ᄀᆞᅀᆞᆯ이다."
    sentences = tokenizer.sentences(text)
    assert [token for one in sentences for token in one if not token.isspace()] == [
        "😀", "나랏말ᄊᆞ미", "ᄒᆞᆫ글", ",", "책", "을", "읽", "었", "다", ".", "👍", "ᄀᆞᅀᆞᆯ이다", ".",
    ]  # fmt: skip
    texts = [text, "나는 갔다."]
    assert list(tokenizer.sentences_batch(texts)) == [tokenizer.sentences(one) for one in texts]


def test_places_go_on_over_pieces_and_lines(tokenizer, monkeypatch):
    monkeypatch.setattr("elmokit.text.tokenizers.korean._MAX_TEXT_CHARACTERS", 8)
    text = "나는 잔다. 너는 잔다. 그는 잔다.\n나는 잔다."
    words = ["나", "는", ".", "너", "는", ".", "그", "는", ".", "나", "는", "."]
    whole = [place for place in tokenizer.places(text) if place[0] in {*words}]
    assert [word for word, *_ in whole] == words
    assert [text[start:end] for _, start, end in whole] == words
    assert sorted(whole, key=lambda place: place[1]) == whole
