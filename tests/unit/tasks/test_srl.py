"""Files of semantic roles: their sentences as units of a sample."""

import json

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.srl import SrlTask

SENTENCE = {"tokens": ["I", "sat"], "predicates": [{"index": 1, "tags": ["B-ARG0", "B-V"]}]}


def written(tmp_path, *sentences):
    path = tmp_path / "train.jsonl"
    lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in sentences)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_sentences_without_parts_of_speech_are_divided_as_they_are_read(tmp_path):
    path = written(tmp_path, SENTENCE, SENTENCE)
    assert len(SrlTask().read(path, training=True, tokenize=str.split)) == 2
    data = SrlTask().divide(path)
    assert [data.size(unit) for unit in data.units] == [1, 1]
    with pytest.raises(FormatError, match="no field 'pos'"):
        SrlTask().divide(path, "verbs")


def test_the_subset_of_verbs_drops_other_predicates(tmp_path):
    noun = {"index": 0, "tags": ["B-V", "O"]}
    sentence = SENTENCE | {"pos": ["NN", "VBD"], "predicates": [noun, *SENTENCE["predicates"]]}
    path = written(tmp_path, sentence)
    data = SrlTask().divide(path, "verbs")
    path.write_text(data.join(data.units), encoding="utf-8")
    (kept,) = SrlTask().read(path, training=True, tokenize=str.split)
    assert kept.predicate == 1


def test_an_index_outside_the_sentence_is_refused(tmp_path):
    path = written(tmp_path, SENTENCE | {"predicates": [{"index": 2, "tags": ["O", "O"]}]})
    with pytest.raises(FormatError, match="index 2 is outside the sentence of 2 tokens"):
        SrlTask().divide(path)
