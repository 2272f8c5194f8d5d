import pytest

from elmokit.text.tokenizers.english import EnglishTokenizer


@pytest.fixture(scope="module")
def tokenizer():
    pytest.importorskip("pysbd")
    pytest.importorskip("sacremoses")
    return EnglishTokenizer()


def test_tokens_are_those_of_moses_without_escapes(tokenizer):
    tokens = tokenizer.tokenize("Mary's 15-year-old didn't pay $5.50 & [left].")
    assert " ".join(tokens) == "Mary 's 15-year-old didn 't pay $ 5.50 & [ left ] ."


@pytest.mark.parametrize("sign", "ȸȹ∮∯☄☇☈☉☝♨♬♭&ᓰ☎□")
def test_no_sign_loses_its_sentence(tokenizer, sign):
    for text in (f"{sign} Hello there", f"I like {sign} songs. They sing.", f"He left.{sign} She!"):
        found = "".join(word for sentence in tokenizer.sentences(text) for word in sentence)
        assert found == text.replace(" ", "")
    assert len(tokenizer.sentences(f"I like {sign} songs. They sing.")) == 2
