"""Texts with a tag per character, read as the tokens of a tokenizer."""

import pytest

from elmokit.errors import FormatError
from elmokit.metrics.span_f1 import read_spans
from elmokit.tasks.formats.characters import (
    read_characters,
    spans_of_characters,
    spans_of_tokens,
)
from elmokit.tasks.ner import NerTask

TEXT = "김민수는 서울 시청에 갔다."
TOKENS = ["김민수", "는", "서울", "시청", "에", "가", "었", "다", "."]
ENTITIES = [("PS", 0, 3), ("LC", 5, 10)]


def rows(text, entities):
    tags = ["O"] * len(text)
    for kind, start, end in entities:
        tags[start:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - start - 1)]
    return "".join(f"{one}\t{tag}\n" for one, tag in zip(text, tags, strict=True)) + "\n"


@pytest.fixture
def read(write):
    def read(text, entities, tokens):
        path = write(f"## name\t{text}\n{rows(text, entities)}")
        (example,) = NerTask(units="characters").read(
            path, training=True, tokenize=lambda given: tokens if given == text else []
        )
        return example

    return read


def test_characters_become_tokens_and_their_tags_go_with_them(read):
    example = read(TEXT, ENTITIES, TOKENS)
    assert (example.text, example.tokens) == (TEXT, tuple(TOKENS))
    assert example.tags[:5] == ("U-PS", "O", "B-LC", "L-LC", "O")
    task = NerTask(units="characters")
    assert read_spans(task.gold(example)) == ENTITIES
    assert task.in_units_of_gold(example, list(example.tags)) == task.gold(example)


def test_an_entity_inside_a_token_is_taught_but_cannot_be_found(read):
    """A tagger that is right about all tokens has one of two: 북미 is no LC as a whole."""
    example = read("북미는 서울", [("LC", 0, 1), ("LC", 4, 6)], ["북미", "는", "서울"])
    assert example.tags == ("U-LC", "O", "U-LC")
    task = NerTask(units="characters")
    score = task.score([task.gold(example)], [task.in_units_of_gold(example, list(example.tags))])
    assert score.value == 50


def test_tokens_that_share_characters_give_spans_that_do_not():
    """갔다 is 가, 었, 다 in the same two characters."""
    offsets = ((0, 2), (0, 2), (0, 2), (3, 5))
    spans = [("A", 0, 1), ("B", 1, 3), ("C", 3, 4)]
    assert spans_of_characters(spans, offsets) == [("A", 0, 2), ("C", 3, 5)]
    assert spans_of_tokens([("A", 0, 1), ("B", 1, 2)], offsets) == [("A", 0, 3)]


def test_a_token_without_characters_is_in_no_span():
    assert spans_of_tokens([("A", 0, 4)], ((0, 2), (2, 2), (2, 4))) == [("A", 0, 3)]
    assert spans_of_tokens([("A", 0, 2)], ((0, 2), (2, 2), (2, 4))) == [("A", 0, 1)]


def test_tokens_are_read_once_however_many_spans_a_text_has():
    class Counted(tuple):
        num_reads = 0

        def __iter__(self):
            Counted.num_reads += 1
            return super().__iter__()

    spans = [("A", start, start + 1) for start in range(100)]
    offsets = Counted((start, start + 1) for start in range(100))
    assert spans_of_tokens(spans, offsets) == spans
    assert Counted.num_reads < 10


def test_rows_of_words_are_refused_with_their_place(write):
    path = write("I\tO\nsat\tO\n\n")
    with pytest.raises(FormatError, match=r"line 2: .*'sat'.* KLUE-NER.*trained with units=words"):
        list(read_characters(path, str.split))


def test_a_tokenizer_that_leaves_the_text_is_told(write):
    path = write(rows("가나다라" * 30, []))
    with pytest.raises(FormatError, match="cannot be found"):
        list(read_characters(path, lambda text: ["다른", "말"] * 50))


def test_a_missing_file_is_told_at_once(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_characters(tmp_path / "none", str.split)
