"""Data whose words are not those of the biLM's tokenizer."""

from pathlib import Path

from elmokit.tasks.word_units import share_split, warn_of_units
from elmokit.text.tokenizers import build_tokenizer

SIMPLE = build_tokenizer("simple")


def test_the_share_of_distinct_words_that_are_split():
    assert share_split(["sat.", "a", "a", "sat.", "b", "by,"], SIMPLE) == 0.5
    assert share_split([], SIMPLE) == 0


def test_only_many_split_words_are_worth_a_warning(caplog):
    warn_of_units(Path("fits.txt"), ["I", "sat", "by", "the", "U.S.,"], SIMPLE)
    assert not caplog.records
    warn_of_units(Path("other.txt"), ["sat.", "by,", "river"], SIMPLE)
    (record,) = caplog.records
    assert "other.txt: 67 % of the words are split" in record.getMessage()
    assert "(simple)" in record.getMessage()
