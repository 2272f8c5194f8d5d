"""Files of sentiment: trees and tables, whatever they are called."""

from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.tasks import classification
from elmokit.tasks.sentiment import SentimentTask

TABLES = {
    "a.tsv": "id\tdocument\tlabel\n1\tgood\t+\n2\tso so\t-\n",
    "a.csv": "id,document,label\n1,good,+\n2,so so,-\n",
    "ratings.txt": "id\tdocument\tlabel\n1\tgood\t+\n2\tso so\t-\n",  # NSMC
    "a.TSV": "text\tlabel\ngood\t+\nso so\t-\n",
    "a.tab": "text\tlabel\ngood\t+\nso so\t-\n",
    "a.jsonl": '{"text": "good", "label": "+"}\n{"text": "so so", "label": "-"}\n',
}
TREES = "(3 (2 It) (4 shines))\n(1 (2 It) (1 rains))\n"


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_read_and_divided_with_their_header(name, tmp_path):
    path = tmp_path / name
    path.write_text(TABLES[name], encoding="utf-8")
    task = SentimentTask()
    read = task.read(path, training=True, tokenize=str.split)
    assert [(one.tokens, one.label) for one in read] == [(("good",), "+"), (("so", "so"), "-")]
    data = task.divide(path)
    path.write_text(data.join(data.units[1:]), encoding="utf-8")
    (last,) = task.read(path, training=True, tokenize=str.split)
    assert last.label == "-"


def test_trees_are_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(TREES, encoding="utf-8")
    task = SentimentTask()
    assert [one.label for one in task.read(path, training=False, tokenize=str.split)] == ["3", "1"]
    data = task.divide(path)
    assert data.join(data.units[1:]) == "(1 (2 It) (1 rains))\n"


def test_a_text_that_is_too_long_is_told_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(classification, "MAX_TEXT_WORDS", 1)
    path = tmp_path / "a.tsv"
    path.write_text(TABLES["a.tsv"], encoding="utf-8")
    with pytest.raises(FormatError, match=r"a\.tsv, line 3: .* 2 words; at most 1"):
        SentimentTask().read(path, training=True, tokenize=str.split)


def test_standard_input_is_refused():
    with pytest.raises(InputError, match=r"^-: .* twice"):
        SentimentTask().read(Path("-"), training=False, tokenize=str.split)
