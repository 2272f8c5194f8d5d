"""Files of texts and pairs with a label, whatever they and their columns are called."""

import pytest

from elmokit.tasks.classification import NliTask, SentimentTask

TABLES = {
    "a.tsv": "id\tdocument\tlabel\n1\tgood\t+\n2\tso so\t-\n",
    "a.csv": "id,document,label\n1,good,+\n2,so so,-\n",
    "ratings.txt": "id\tdocument\tlabel\n1\tgood\t+\n2\tso so\t-\n",  # NSMC
    "a.TSV": "text\tlabel\ngood\t+\nso so\t-\n",
    "a.jsonl": '{"text": "good", "label": "+"}\n{"text": "so so", "label": "-"}\n',
}


def read(task, path, *, training=True):
    return task().read(path, training=training, tokenize=str.split)


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_read_and_divided_with_their_header(name, write):
    path = write(TABLES[name], name=name)
    expected = [((("good",),), "+"), ((("so", "so"),), "-")]
    assert [(one.sentences, one.label) for one in read(SentimentTask, path)] == expected
    data = SentimentTask().divide(path)
    (last,) = read(SentimentTask, write(data.join(data.units[1:]), name=name))
    assert last.label == "-"


def test_trees_are_lines_and_give_phrases_in_training(write):
    trees = "(3 (2 It) (4 (4 really) (4 (4 shines) (2 (2 to) (2 (2 -) (2 day))))))\n(1 rains)\n"
    path = write(trees, name="a.txt")
    assert [one.label for one in read(SentimentTask, path, training=False)] == ["3", "1"]
    phrases = [len(one.sentences[0]) for one in read(SentimentTask, path)]
    assert phrases == [6, 5, 4, 1]  # of four words and more
    data = SentimentTask().divide(path)
    assert data.join(data.units[1:]) == "(1 rains)\n"


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("premise\thypothesis\tlabel", "I sat\tI\tyes"),
        ("gold_label\tsentence1\tsentence2", "yes\tI sat\tI"),  # SNLI
        ("ID\tText\tQuestion\tAnswer", "1\tI sat\tI\tyes"),  # BoolQ of KoBEST
    ],
)
def test_columns_are_found_by_their_names(header, row, write):
    (pair,) = read(NliTask, write(f"{header}\n{row}\n", name="train.tsv"))
    assert (pair.sentences, pair.label) == ((("I", "sat"), ("I",)), "yes")


def test_the_label_of_no_agreement_is_no_class(write, caplog):
    labels = ["0", "1", "-", "2", "-1"]
    rows = "".join(f"I sat\tI {number}\t{label}\n" for number, label in enumerate(labels))
    pairs = read(NliTask, write(f"premise\thypothesis\tlabel\n{rows}", name="train.tsv"))
    assert [pair.label for pair in pairs] == ["0", "1", "2"]
    assert "no_gold_label: 2" in caplog.text
