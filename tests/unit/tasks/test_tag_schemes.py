from itertools import pairwise, product

import numpy as np
import pytest
import torch

from elmokit.tasks.networks.crf import viterbi
from elmokit.tasks.tag_schemes import allowed_transitions

BIOUL_TAGS = ["O", *(f"{prefix}-{kind}" for kind in ("PER", "LOC") for prefix in "BIUL")]
BIO_TAGS = ["O", "B-ARG0", "I-ARG0", "B-C-ARG0", "I-C-ARG0", "B-V"]


def pairs(tags, scheme):
    """The allowed pairs, with START and END."""
    allowed = allowed_transitions(tags, scheme)
    names = [*tags, "START", "END"]
    return {(names[i], names[j]) for i, j in np.argwhere(allowed)}


def test_bioul_written_out():
    """One type, so that the list can be read."""
    after_a_whole = {"O", "B-X", "U-X"}
    expected = {("START", b) for b in after_a_whole | {"END"}}
    for whole in ("O", "U-X", "L-X"):
        expected |= {(whole, b) for b in after_a_whole | {"END"}}
    for part in ("B-X", "I-X"):
        expected |= {(part, "I-X"), (part, "L-X")}
    assert pairs(["O", "B-X", "I-X", "L-X", "U-X"], "bioul") == expected


def test_bio_written_out():
    expected = {("START", b) for b in ("O", "B-X", "B-Y", "END")}
    for before in ("O", "B-X", "I-X", "B-Y", "I-Y"):
        expected |= {(before, b) for b in ("O", "B-X", "B-Y", "END")}
    expected |= {("B-X", "I-X"), ("I-X", "I-X"), ("B-Y", "I-Y"), ("I-Y", "I-Y")}
    assert pairs(["O", "B-X", "I-X", "B-Y", "I-Y"], "iob2") == expected


def test_types_may_hold_hyphens():
    found = pairs(BIO_TAGS, "iob2")
    assert ("B-C-ARG0", "I-C-ARG0") in found
    assert ("B-ARG0", "I-C-ARG0") not in found
    assert ("B-C-ARG0", "I-ARG0") not in found


def spans_to_bioul(spans, length):
    tags = ["O"] * length
    for start, end, kind in spans:
        tags[start:end] = (
            [f"U-{kind}"]
            if end - start == 1
            else [f"B-{kind}", *[f"I-{kind}"] * (end - start - 2), f"L-{kind}"]
        )
    return tuple(tags)


def test_bioul_allows_exactly_the_sequences_that_some_spans_give():
    """All sequences of three tags, against all ways to lay spans on three words."""
    found = pairs(BIOUL_TAGS, "bioul")
    allowed = {
        tags
        for tags in product(BIOUL_TAGS, repeat=3)
        if all(pair in found for pair in pairwise(("START", *tags, "END")))
    }
    pieces = [(s, e, k) for s in range(3) for e in range(s + 1, 4) for k in ("PER", "LOC")]
    possible = set()
    for size in range(4):
        for spans in product(pieces, repeat=size):
            if all(a[1] <= b[0] for a, b in pairwise(spans)):
                possible.add(spans_to_bioul(spans, 3))
    assert allowed == possible


@pytest.mark.parametrize(("tags", "scheme"), [(BIO_TAGS, "iob2"), (BIOUL_TAGS, "bioul")])
def test_the_search_never_returns_an_illegal_sequence(tags, scheme):
    """500 sentences of any scores; nearly all of their greedy sequences are illegal."""
    allowed, found = allowed_transitions(tags, scheme), pairs(tags, scheme)
    logits = torch.randn(500, 9, len(tags), generator=torch.Generator().manual_seed(0))
    lengths = torch.arange(500) % 10
    mask = torch.arange(9) < lengths.unsqueeze(1)

    def num_legal(ids):
        return sum(
            all(pair in found for pair in pairwise(["START", *(tags[i] for i in row[:n]), "END"]))
            for row, n in zip(ids.tolist(), lengths.tolist(), strict=True)
        )

    assert num_legal(logits.argmax(dim=2)) < 250
    assert num_legal(viterbi(logits, mask, allowed=torch.from_numpy(allowed))[0]) == 500


def test_a_tag_that_cannot_be_completed_leads_nowhere():
    found = pairs(["O", "B-X"], "bioul")
    assert ("START", "B-X") in found
    assert not any(before == "B-X" for before, _ in found)


def test_nothing_leaves_the_end_or_enters_the_start():
    for tags, scheme in ((BIO_TAGS, "iob2"), (BIOUL_TAGS, "bioul")):
        allowed = allowed_transitions(tags, scheme)
        assert allowed.dtype == bool
        assert allowed.shape == (len(tags) + 2, len(tags) + 2)
        assert not allowed[-1].any()
        assert not allowed[:, -2].any()


@pytest.mark.parametrize("tag", ["", "X", "B", "B-", "L-X", "U-X", "b-X", "-X", "BX", "O-X"])
def test_tags_of_no_scheme(tag):
    with pytest.raises(ValueError, match=f"'{tag}' .*iob2: .* O, B-TYPE, I-TYPE"):
        allowed_transitions(["O", tag], "iob2")


def test_other_bad_input():
    with pytest.raises(ValueError, match=r"`tags` .*'O'"):
        allowed_transitions(["O", "B-X", "O"], "iob2")
    with pytest.raises(ValueError, match="`tags`"):
        allowed_transitions([], "iob2")
