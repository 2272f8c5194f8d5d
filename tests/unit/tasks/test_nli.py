"""Files of pairs, whatever their columns are called."""

import pytest

from elmokit.tasks.nli import NliTask


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("premise\thypothesis\tlabel", "I sat\tI\tyes"),
        ("gold_label\tsentence1\tsentence2", "yes\tI sat\tI"),  # SNLI
        ("ID\tText\tQuestion\tAnswer", "1\tI sat\tI\tyes"),  # BoolQ of KoBEST
    ],
)
def test_columns_are_found_by_their_names(header, row, tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text(f"{header}\n{row}\n", encoding="utf-8")
    (pair,) = NliTask().read(path, training=True, tokenize=str.split)
    assert (pair.first, pair.second, pair.label) == (("I", "sat"), ("I",), "yes")


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        (["0", "1", "2", "-1"], ["0", "1", "2"]),  # Hugging Face's copies
        (["neutral", "-1", "entailment"], ["neutral", "entailment"]),
        (["0", "1", "-1"], ["0", "1", "-1"]),  # three classes
        (["-1"], ["-1"]),
    ],
)
def test_the_label_of_no_agreement_is_no_class(labels, kept, tmp_path, caplog):
    path = tmp_path / "train.tsv"
    rows = [f"I sat\tI {number}\t{label}\n" for number, label in enumerate(labels)]
    path.write_text("premise\thypothesis\tlabel\n" + "".join(rows), encoding="utf-8")
    pairs = NliTask().read(path, training=True, tokenize=str.split)
    assert [pair.label for pair in pairs] == kept
    assert ("1 pair of the label -1" in caplog.text) == (kept != labels)
