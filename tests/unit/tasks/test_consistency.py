"""Names of a document that get one type, and are found wherever they are."""

from types import SimpleNamespace

import pytest

from elmokit.metrics.span_f1 import read_spans
from elmokit.tasks.consistency import agreeing, consistent_tags


def spans(*document):
    """Return the spans after consistency; a sentence is text and its tags, separated by |."""
    read = [tuple(part.split() for part in sentence.split("|")) for sentence in document]
    return [read_spans(tags) for tags in consistent_tags(read)]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        # the majority's type, also where it was missed; not in lower case
        (["Rome fell | U-LOC O", "in Rome | O U-LOC", "Rome | U-PER", "old Rome rome | O O O"],
         [[("LOC", 0, 1)], [("LOC", 1, 2)], [("LOC", 0, 1)], [("LOC", 1, 2)]]),
        # of equal counts the first
        (["Rome | U-PER", "Rome | U-LOC"], [[("PER", 0, 1)], [("PER", 0, 1)]]),
        # found once: nothing to agree with
        (["Rome | U-LOC", "Rome | O"], [[("LOC", 0, 1)], []]),
        # the longest name wins, and what is part of another span stays
        (["New York | B-LOC L-LOC", "New York | B-LOC L-LOC", "York | U-PER", "York | U-PER",
          "New York York | O O O", "New York Times | B-ORG I-ORG L-ORG"],
         [[("LOC", 0, 2)], [("LOC", 0, 2)], [("PER", 0, 1)], [("PER", 0, 1)],
          [("LOC", 0, 2), ("PER", 2, 3)], [("ORG", 0, 3)]]),
        (["", ""], [[], []]),
    ],
)  # fmt: skip
def test_names_agree_within_a_document(document, expected):
    document = [sentence if "|" in sentence else "|" for sentence in document]
    assert spans(*document) == expected


def test_an_empty_text_ends_a_document_and_new_spans_have_no_probability():
    def sentence(text, tags, probs):
        return SimpleNamespace(tokens=tuple(text.split())), (tags.split(), probs)

    answers = [
        sentence("Rome", "U-LOC", [0.9]), sentence("Rome", "U-LOC", [0.8]),
        sentence("Rome", "U-PER", [0.4]), sentence("", "", []), sentence("Rome", "O", []),
    ]  # fmt: skip
    agreed = [answer for _, answer in agreeing(iter(answers), with_probs=True)]
    assert agreed == [
        (["U-LOC"], [0.9]), (["U-LOC"], [0.8]), (["U-LOC"], [None]), ([], []), (["O"], []),
    ]  # fmt: skip
