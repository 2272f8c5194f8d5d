"""Profiles of spelling: what each changes, and what it leaves alone."""

import unicodedata

import numpy as np
import pytest

from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.text.normalization import DEFAULT_NORMALIZATION, normalize

MESSY = "“Ｄｏｎ’t”\u200b — `` so ''\ufeff, " + unicodedata.normalize("NFD", "각")


def test_new_models_read_plain_signs():
    assert DEFAULT_NORMALIZATION == CharVocabConfig().normalization == "plain-1"
    assert normalize(MESSY, "plain-1") == '"Don\'t" -- " so ", 각'


def test_earlier_profiles_are_what_they_were():
    assert normalize(MESSY, "none") == MESSY
    assert normalize(MESSY, "NFC") == unicodedata.normalize("NFC", MESSY)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("``", '"'),
        ("''", '"'),
        ("`", "'"),
        ("-LRB- -RRB- -LSB- -RSB- -LCB- -RCB- -lrb-", "( ) [ ] { } ("),
        ("-LRB--RRB-", "()"),
        ("and\\/or \\*", "and/or *"),
        ("“a” „b‟ ‘c’ ‚d‛ e´s", "\"a\" \"b\" 'c' 'd' e's"),
        ("’’", '"'),
        ("1990–2000, mid‑19th, −5", "1990-2000, mid-19th, -5"),
        ("so — he ― said…", "so -- he -- said..."),
        ("do\u00adc a\u200bb \u200ec\u200f \u2060d", "doc ab c d"),
        ("ＡＢＣ１２３！（주） ｶﾞ ﾡ ￦", "ABC123!(주) ガ ㄱ ₩"),
        ("김민수는\u200b 서울에 갔다.", "김민수는 서울에 갔다."),
        ("Weekly\"\u200d\u200d '\u200ds", "Weekly\" 's"),
    ],
)
def test_signs_of_plain_text(text, plain):
    assert normalize(text, "plain-1") == plain


@pytest.mark.parametrize(
    "text",
    [
        "plain ASCII text, it's \"so\" (here) - there -- 3/4 * '''",
        "a-LRB-b C:\\dir --LRB",
        "« a » ‹b› 「c」 5′ 6″ Hawaiʻi x×y",
        "👨\u200d👩\u200d👧\u200d👦 👍🏽🇰🇷 تی\u200cتی ফিত্\u200dর ไทย\u200bไทย",
        "ᄒᆞᆫ글 나랏말ᄊᆞ미",
        "\u3000\u00a0",
    ],
)
def test_what_stays_as_it_is(text):
    assert normalize(text, "plain-1") == text


def test_a_word_of_dropped_characters_keeps_its_place():
    vocab = CharVocab()
    rows = vocab.encode([["a", "\u200b", "b"]])[0]
    assert len(rows) == 5
    np.testing.assert_array_equal(rows[2], vocab.encode_word(""))
