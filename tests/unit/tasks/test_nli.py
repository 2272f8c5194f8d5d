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
