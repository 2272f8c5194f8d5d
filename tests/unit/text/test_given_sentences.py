"""Strings are split by the model's tokenizer, lists are words."""

import pytest

from elmokit.text import given_sentences
from elmokit.text.given_sentences import split_sentences


def test_strings_are_split_and_lists_are_words():
    given = split_sentences(["I sat", ["by the", ""], ("bank",), ""], str.split)
    assert list(given) == [["I", "sat"], ["by the", ""], ["bank"], []]


def test_one_string_is_refused_at_once():
    with pytest.raises(TypeError, match=r"one string.*I sat"):
        split_sentences("I sat .", str.split)
    with pytest.raises(TypeError, match="`texts`"):
        given_sentences.check_is_list(b"I sat", name="texts")


@pytest.mark.parametrize("sentence", [7, None, ["a", 7], [["a"]], b"ab"])
def test_what_is_no_sentence_is_named(sentence):
    with pytest.raises(TypeError, match=r"sentence 1 .*got"):
        list(split_sentences(iter([["a"], sentence]), str.split))


@pytest.mark.parametrize(("text", "message"), [("a\0b", "NUL"), ("a\ud800", "surrogate")])
def test_what_is_no_text_is_refused_in_strings_and_kept_in_words(text, message):
    with pytest.raises(ValueError, match=f"sentence 0 .*{message}"):
        list(split_sentences([text], str.split))
    assert list(split_sentences([[text]], str.split)) == [[text]]
