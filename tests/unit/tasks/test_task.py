"""Data whose words are not those of the biLM's tokenizer."""

from pathlib import Path

import pytest

from elmokit.errors import InputError
from elmokit.tasks.task import TaskText, usual_units, warn_of_units, warn_once
from elmokit.text.tokenizers.protocol import WhitespaceTokenizer
from elmokit.text.tokenizers.registry import build_tokenizer

from ...builders.task_files import row

SIMPLE = build_tokenizer("simple")


@pytest.fixture(autouse=True)
def nothing_said_before():
    warn_once.cache_clear()


def test_only_many_split_words_are_worth_a_warning_and_one(caplog):
    fits = ("I", "sat", "by", "the", "U.S.,")
    splits = ("sat.", "by,", "river")
    warn_of_units(Path("fits.txt"), fits, "words", SIMPLE, has_bilm=True)
    assert not caplog.records
    for _ in range(2):
        warn_of_units(Path("other.txt"), splits, "words", SIMPLE, has_bilm=True)
    (message,) = caplog.messages
    assert "other.txt: 67 % of the words are split by the tokenizer 'simple'" in message
    assert "the biLM has not seen" in message
    assert "morphemes" not in message
    warn_of_units(Path("ko.txt"), splits, "words", SIMPLE, has_bilm=False, option="--units x")
    assert "--units x" in caplog.messages[-1]
    assert "the biLM has not seen" not in caplog.messages[-1]


def test_morphemes_need_a_tokenizer_that_makes_them(caplog):
    warn_of_units(Path("ko.txt"), ["하늘"], "morphemes", SIMPLE, has_bilm=True)
    assert "the tokenizer 'simple' makes none" in caplog.text


class Morphemes(WhitespaceTokenizer):
    name = "korean"


@pytest.mark.parametrize(
    ("lemma", "xpos", "tokenizer", "units"),
    [
        ("고향+은", "ncn+jxt", Morphemes(), "morphemes"),
        ("고향+은", "ncn+jxt", SIMPLE, "words"),
        ("고향", "ncn", Morphemes(), "words"),  # no word has several morphemes
        ("고향+은", "ncn", Morphemes(), "words"),  # a plus sign inside a word
        ("_", "_", Morphemes(), "words"),
    ],
)
def test_the_units_of_a_treebank_are_the_tokenizers_if_it_has_them(
    lemma, xpos, tokenizer, units, write
):
    path = write(row(1, "고향은", lemma=lemma, xpos=xpos))
    assert usual_units(path, tokenizer) == units


def test_morphemes_are_read_if_asked_for(model_dir, write):
    text = TaskText.of_model("pos", str(model_dir), units="morphemes")
    assert list(text.read(write(row(1, "나는", lemma="나+는", xpos="np+jx")))) == [("나", "는")]
    with pytest.raises(InputError, match=r"units='morphemes'.* nli"):
        TaskText.of_model("nli", str(model_dir), units="morphemes")
