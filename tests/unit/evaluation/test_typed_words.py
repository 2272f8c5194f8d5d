"""Surprisals of words between spaces: a row a word, with the columns of the table it came from."""

import csv
from io import StringIO

import pytest

from elmokit.errors import InputError
from elmokit.evaluation.surprisal import surprisal, typed_of
from elmokit.evaluation.tables import TableText, sentences_of_items
from elmokit.text.tokenizers.registry import TokenizerConfig

from ...builders.command_line import elmokit
from ...builders.training_models import toy_model

TEXT = " the boat,  lay by\tthe bank. "


@pytest.fixture(scope="module")
def model():
    return toy_model(tokenizer=TokenizerConfig(name="simple", version="2"))


def test_every_typed_word_has_a_row_and_all_of_its_tokens(model):
    tokens = list(surprisal(model, [TEXT], precision="fp32"))
    words = typed_of(TEXT, tokens)
    assert [word.word for word in words] == TEXT.split()
    assert [TEXT[word.start : word.end] for word in words] == TEXT.split()
    assert [word.index for word in words] == list(range(6))
    for way in ("forward", "backward", "mean"):
        of_tokens = sum(getattr(token, way) for token in tokens[:-1])
        assert sum(getattr(word, way) for word in words) == pytest.approx(of_tokens)
    assert sum(word.num_tokens for word in words) == len(tokens) - 1
    dropped = typed_of(TEXT, tokens, "drop")
    assert [word.num_tokens for word in dropped] == [1] * 6
    assert [word.word for word in typed_of(f"{TEXT}\u3000\u200b ", tokens)][-1] == "\u200b"
    assert typed_of(f"{TEXT}\u3000\u200b ", tokens)[-1].num_tokens == 0


def rows_of(text):
    return list(csv.DictReader(StringIO(text), dialect="excel-tab"))


@pytest.mark.e2e
def test_a_table_of_words_comes_out_row_by_row(model, tmp_path):
    model_dir, path = tmp_path / "toy", tmp_path / "words.tsv"
    model.save(model_dir)
    words = [("i2", "the"), ("i1", "river"), ("i2", "boat."), ("i2", "bank"), ("i1", "ship")]
    lines = [f"{item}\t{word}\t{place}" for place, (item, word) in enumerate(words)]
    path.write_text("\n".join(["item\tword\treading.time", *lines]) + "\n", encoding="utf-8")
    options = ["--text-field", "word", "--words", "typed", "--item", "item"]
    rows = rows_of(elmokit("surprisal", model_dir, path, *options).stdout)
    assert [(row["item"], row["word"]) for row in rows] == words
    assert [row["reading.time"] for row in rows] == [str(place) for place in range(5)]
    assert [row["line"] for row in rows] == [str(place) for place in range(2, 7)]
    # the item goes on after its sentence
    sentences = {"i1": ["river ship"], "i2": ["the boat.", "bank"]}
    text = tmp_path / "text.txt"
    text.write_text("\n".join([*sentences["i2"], *sentences["i1"]]) + "\n", encoding="utf-8")
    plain = rows_of(elmokit("surprisal", model_dir, text, "--words", "typed").stdout)
    by_word = {row["word"]: row for row in plain}
    for row in rows:
        assert row["forward"] == by_word[row["word"]]["forward"]


def test_words_of_items_are_single_and_in_one_place(tmp_path):
    with pytest.raises(InputError, match="two words at the same place"):
        sentences_of_items(["a", "a"], ["x", "y"], [1, 1])
    with pytest.raises(InputError, match="not one word"):
        sentences_of_items(["a"], ["x y"], [1])
    paths = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    for path in paths:
        path.write_text("item\tword\na\tbank\n", encoding="utf-8")
    with pytest.raises(InputError, match="one table"):
        TableText(paths, "word", "item")
