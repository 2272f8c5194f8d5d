"""Data whose words are not those of the biLM's tokenizer."""

from pathlib import Path

import pytest

from elmokit.tasks.inputs import word_units
from elmokit.tasks.inputs.word_units import share_split, warn_of_units
from elmokit.tasks.registry import find_task
from elmokit.text.tokenizers.registry import build_tokenizer

SIMPLE, NER = build_tokenizer("simple"), find_task("ner")


@pytest.fixture(autouse=True)
def nothing_said_before():
    word_units._warn.cache_clear()


def test_the_share_of_distinct_words_that_are_split():
    assert share_split(["sat.", "a", "a", "sat.", "b", "by,"], SIMPLE) == 0.5
    assert share_split([], SIMPLE) == 0


def examples_of(*words):
    return [NER.example_of(words)]


def test_only_many_split_words_are_worth_a_warning_and_one(caplog):
    fits = examples_of("I", "sat", "by", "the", "U.S.,")
    splits = examples_of("sat.", "by,", "river")
    warn_of_units(Path("fits.txt"), NER, fits, "words", SIMPLE, has_bilm=True)
    assert not caplog.records
    for _ in range(2):
        warn_of_units(Path("other.txt"), NER, splits, "words", SIMPLE, has_bilm=True)
    (record,) = caplog.records
    assert "other.txt: 67 % of the words are split by the tokenizer 'simple'" in record.getMessage()
    assert "the biLM has not seen" in record.getMessage()
    assert "morphemes" not in record.getMessage()


def test_the_way_out_is_named_where_there_is_one(caplog):
    splits = examples_of("sat.", "by,")
    warn_of_units(Path("ko.txt"), find_task("pos"), splits, "words", SIMPLE, has_bilm=False)
    assert "--set units=morphemes" in caplog.text
    assert "the biLM has not seen" not in caplog.text


def test_morphemes_need_a_tokenizer_that_makes_them(caplog):
    pos = find_task("pos").in_units("morphemes")
    warn_of_units(Path("ko.txt"), pos, examples_of("하늘"), "morphemes", SIMPLE, has_bilm=True)
    assert "the tokenizer 'simple' makes none" in caplog.text
