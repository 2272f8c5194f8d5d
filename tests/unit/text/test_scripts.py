"""The scripts of words."""

import pytest

from elmokit.text.scripts import has_letter, script_of


@pytest.mark.parametrize(
    ("word", "script"),
    [
        ("bank", "Latin"), ("É", "Latin"), ("ｂａｎｋ", "Latin"), ("말", "Hangul"),
        ("ᄒ", "Hangul"), ("ﾡ", "Hangul"), ("ｶﾀｶﾅ", "Katakana"), ("銀行", "Han"),
        ("банк", "Cyrillic"), ("3말", "Hangul"), ("…", ""), ("2022", ""), ("", ""),
    ],
)  # fmt: skip
def test_the_first_letter_decides_the_script(word, script):
    assert script_of(word) == script
    assert has_letter(word) == bool(script)
