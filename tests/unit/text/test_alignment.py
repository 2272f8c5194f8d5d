"""Words found in the text again, and spans of characters in words."""

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.text.alignment import align, align_sentences, covering_words
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import build_tokenizer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # 갔 is read as 가 었, 폈 as 피 었; 다 and . stand in the text twice
        (
            "나는 갔다. 꽃이 폈다.",
            "나:나 는:는 가:갔 었:갔 다:다 .:. 꽃:꽃 이:이 피:폈 었:폈 다:다 .:.",
        ),
        ("의사다.", "의사:의사 이: 다:다 .:."),  # of the copula 이 nothing is written
        ("I can't go", "I:I ca:ca not:n't go:go"),
        ("in 1998 .", "in:in 0000:1998 .:."),
        ("by 1998 ", "by:by 0000:1998"),
        ("1998 by", "0000:1998 by:by"),
        # decomposed in the text, composed in the words: é is one character or two
        ("le cafe\u0301 noir", "le:le caf\u00e9:cafe\u0301 noir:noir"),
        ("a \x07b c", "a:a b:b c:c"),  # a character that the tokenizer dropped
        ("", "x:"),
        # 해 is read as 하 어; the next 어 of the text is that of another word: after it is no 넣
        ("일해 넣어요 해요", "일:일 하:해 어:해 넣:넣 어:어 요:요 하:해 어:해 요:요"),
        ("ß", "ss:ß"),  # regardless of case, a word can be longer than what is written
    ],
)
def test_words_that_a_tokenizer_altered_share_the_stretch_between_their_neighbors(text, expected):
    words = [pair.partition(":")[0] for pair in expected.split()]
    offsets = align(words, text)
    assert offsets == tuple(sorted(offsets))
    assert with_written(words, text, offsets) == expected


def with_written(words, text, offsets):
    """Each word with what is written for it."""
    written = [text[start:end] for start, end in offsets]
    return " ".join(map(":".join, zip(words, written, strict=True)))


@pytest.mark.parametrize(
    ("text", "is_plain", "expected"),
    [
        (
            unicodedata.normalize("NFD", "김민수는 서울에 갔다."),
            True,
            "김민수:김민수 는:는 서울:서울 에:에 가:갔 었:갔 다:다 .:.",
        ),
        # from the letters alone, 어 could be that of 어요, and 박지수 all up to it
        (
            "저는 박지숩니다 왔어요.",
            True,
            "저:저 는:는 박지수:박지숩 이:숩 ㅂ니다:숩니다 오:왔 었:왔 어요:어요 .:.",
        ),
        (
            "😀 이게 뭐야\n“커다래”  하얘졌다",
            True,
            '😀:😀 이것:이게 이:게 뭐:뭐 이: 야:야 ":“ 커다랗:커다래 어:래 ":” 하얗:하얘 어:얘 '
            "지:졌 었:졌 다:다",
        ),
        # as models of 0.1 read it: Kiwi takes another word for a name
        (
            "“커다래”  하얘졌다",
            False,
            "“:“ 커다래:커다래 ”:” 하얗:하얘 어:얘 지:졌 었:졌 다:다",
        ),
    ],
)  # fmt: skip
def test_morphemes_are_where_kiwi_found_them(text, is_plain, expected):
    pytest.importorskip("kiwipiepy")
    splitter = build_tokenizer("korean")
    if is_plain:
        splitter = NormalizingTokenizer(splitter, "plain-1")
    words = splitter.tokenize(text)
    offsets = align(words, text)
    assert offsets is not None
    assert unicodedata.normalize("NFC", with_written(words, text, offsets)) == expected
    assert align(words[:-2], text) == offsets[:-2]


SIGNS = "ab 가각ﾊ“…\u1100\u1161\u11a8\u0301\u00ad\u200b`'-\\/"


@given(st.text(max_size=60) | st.text(st.sampled_from(SIGNS), max_size=30))
def test_any_text_is_aligned_with_its_words_and_with_its_normalized_words(text):
    simple = build_tokenizer("simple")
    words = simple.tokenize(text)
    assert [text[start:end] for start, end in align(words, text) or ()] == words
    words = NormalizingTokenizer(simple, "plain-1").tokenize(text)
    offsets = align(words, text)
    assert offsets is not None
    bounds = [(0, 0), *offsets, (len(text), len(text))]
    assert all(a <= c and b <= d for (a, b), (c, d) in itertools.pairwise(bounds))
    assert all(start < end for start, end in offsets)


def test_words_that_cannot_be_found_again_have_no_place():
    assert align(["a", "x", "b"], f"a {'y' * 200} b") is None
    assert align(["x"] * 200, "a b") is None
    assert align_sentences([["a"], ["x", "b"]], f"a {'y' * 200} b") == [None, None]
    assert align_sentences([["a"], [], ["c", "b"]], "a c b") == [((0, 1),), (), ((2, 3), (4, 5))]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((0, 3), (0, 1)),
        ((0, 4), (0, 1)),  # the space behind it belongs to no word
        ((1, 2), (0, 1)),  # inside a word: all of it
        ((2, 5), (0, 2)),  # cuts two words
        ((4, 10), (1, 4)),
        ((3, 4), None),  # between words
        ((8, 8), None),
        ((20, 25), None),
        ((11, 14), None),  # a word of which nothing is written cannot be the answer
    ],
)
def test_a_span_is_all_words_that_have_a_character_of_the_answer(answer, expected):
    # of the third and of the last word nothing is written
    offsets = ((0, 3), (4, 8), (8, 8), (8, 10), (12, 12))
    assert covering_words(offsets, *answer) == expected
