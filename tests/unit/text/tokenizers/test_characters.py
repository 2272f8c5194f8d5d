import pytest

from elmokit.text.tokenizers.characters import CharacterTokenizer


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("MKTAY IAK\nGG", ["MKTAYIAK", "GG"]),
        ("我走。你好！再见", ["我走。", "你好！", "再见"]),
        ("「走。」他说？！好", ["「走。」", "他说？！", "好"]),
        ("3.5 a.b", ["3.5a.b"]),
        ("", []),
    ],
)
def test_characters_are_tokens(text, sentences):
    assert CharacterTokenizer().sentences(text) == [list(sentence) for sentence in sentences]


def test_what_is_drawn_together_stays_together():
    assert CharacterTokenizer().tokenize("e\u0301 🇰🇷🇺🇸 👨\u200d👩\u200d👧👍🏽") == [
        "e\u0301", "🇰🇷", "🇺🇸", "👨\u200d👩\u200d👧", "👍🏽",
    ]  # fmt: skip
