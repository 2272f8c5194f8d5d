"""Data whose words are not those of the biLM's tokenizer."""

from pathlib import Path

import pytest

from elmokit.errors import InputError
from elmokit.tasks.task import TaskText, warn_of_split_words, warn_once
from elmokit.text.tokenizers.registry import build_tokenizer

from ...builders.task_files import row

SIMPLE = build_tokenizer("simple")


@pytest.fixture(autouse=True)
def nothing_said_before():
    warn_once.cache_clear()


def test_only_many_split_words_are_worth_a_warning_and_one(caplog):
    warn_of_split_words(Path("fits.txt"), ("I", "sat", "by", "the", "U.S.,"), SIMPLE)
    assert not caplog.records
    for _ in range(2):
        warn_of_split_words(Path("other.txt"), ("sat.", "by,", "river"), SIMPLE)
    (message,) = caplog.messages
    assert "other.txt: the tokenizer 'simple' splits 2 of 3 words" in message


def test_morphemes_are_read_if_asked_for(model_dir, write):
    text = TaskText.of_model("pos", str(model_dir), units="morphemes")
    assert list(text.read(write(row(1, "나는", lemma="나+는", xpos="np+jx")))) == [("나", "는")]
    with pytest.raises(InputError, match=r"units='morphemes'.* nli"):
        TaskText.of_model("nli", str(model_dir), units="morphemes")
