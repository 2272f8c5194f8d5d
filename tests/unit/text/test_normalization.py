"""Profiles of spelling: what each changes, and what it leaves alone."""

import time

import pytest

from elmokit.text.normalization import normalize, normalized_tokens


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


LONG = 400_000
HOSTILE = {
    "marks out of order": "a" + "\u0301\u0323" * (LONG // 2),
    "marks that consist of marks": "a" + "\u0f73\u0301\u0344" * (LONG // 3),
    "marks parted by what is dropped": "a" + "\u0301\u034f\u0323" * (LONG // 3),
    "backslashes": "é" + "\\" * LONG,
    "quotes": "é" + "'" * LONG,
    "joiners": "a" + "\u200b" * LONG + "b",
    "brackets": "é" + "-LRB-" * (LONG // 5),
}


@pytest.mark.parametrize("form", ["NFC", "plain-1"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_time_grows_with_the_length_of_a_text(text, form):
    started = time.process_time()
    normalize(text, form)  # quadratic: minutes
    assert time.process_time() - started < 10


def test_tokens_that_a_tokenizer_rewrote_are_normalized_or_left_out():
    assert normalized_tokens(["e\u0301", "``", "\u200b", "a"], "plain-1") == ["é", '"', "a"]
    assert normalized_tokens(["e\u0301"], "none") == ["e\u0301"]
