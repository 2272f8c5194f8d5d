"""Parts of speech by a linear classifier."""

import numpy as np
import pytest

from elmokit.probes import pos
from elmokit.probes.pos import MAJORITY, probe_pos

from ...builders.probe_sources import TableSource, tagged

pytest.importorskip("sklearn")

TEXT = "the/DET dog/NOUN runs/VERB | the/DET runs/NOUN | a/DET cat/NOUN runs/VERB | run/VERB"
TRAIN = [tagged(text) for text in TEXT.split("|")]
DEV = [tagged(text) for text in ("the/DET cat/NOUN sleeps/VERB", "runs/NOUN bird/NOUN", "oh/INTJ")]
KINDS = {"the": 0, "a": 0, "dog": 1, "cat": 1, "bird": 1, "runs": 2, "run": 2, "sleeps": 2, "oh": 2}
TABLE = {word: np.eye(3)[kind] for word, kind in KINDS.items()}


def test_seen_and_unseen_words_are_scored_apart():
    baseline, good = probe_pos([TableSource(TABLE, ("good",))], TRAIN, DEV)
    assert (good.name, good.num_words, good.num_unseen) == ("good", 6, 3)
    # right: the cat sleeps | bird; wrong: runs as a noun, and a tag that training lacks
    assert good.counts.tolist() == [[3, 3], [1, 2], [0, 1]]
    assert good.unseen_counts.tolist() == [[1, 1], [1, 1], [0, 1]]
    assert (good.accuracy, good.seen, good.unseen) == pytest.approx((200 / 3,) * 3)
    # the, cat right; runs is a verb; of all words the most frequent tag (a tie) is the first met
    assert (baseline.name, baseline.counts[0].tolist()) == (MAJORITY, [2, 3])
    assert baseline.seen == pytest.approx(200 / 3)


def test_no_layer_gains_from_the_size_of_its_activations():
    random = np.random.default_rng(0)
    x, dev = random.normal(size=(60, 4)), random.normal(size=(2000, 4))
    labels = (x @ random.normal(size=(4, 3)) + random.gumbel(size=(60, 3))).argmax(axis=1)
    scale, offset = 10 ** random.uniform(-2, 1, 4), random.normal(size=4)
    tags = [f"T{label}" for label in labels]
    plain, scaled = (
        pos._classify("x", rows.astype("f4"), tags, dev_rows.astype("f4"))
        for rows, dev_rows in ((x, dev), (x * scale + offset, dev * scale + offset))
    )
    assert np.mean(np.array(plain) == np.array(scaled)) > 0.998
