"""Parts of speech by a linear classifier."""

import numpy as np
import pytest

from ...builders.probe_sources import TableSource, tagged

TRAIN = ("the/DET dog/NOUN runs/VERB", "the/DET runs/NOUN", "a/DET cat/NOUN runs/VERB", "run/VERB")
DEV = ("the/DET cat/NOUN sleeps/VERB", "runs/NOUN bird/NOUN", "oh/INTJ")
KINDS = {"the": 0, "a": 0, "dog": 1, "cat": 1, "bird": 1, "runs": 2, "run": 2, "sleeps": 2, "oh": 2}


@pytest.fixture
def scores():
    from elmokit.probes.pos import probe_pos

    good = {word: np.eye(3)[kind] for word, kind in KINDS.items()}
    source = TableSource(good, ("good",))
    return probe_pos([source], [tagged(t) for t in TRAIN], [tagged(t) for t in DEV])


def test_seen_and_unseen_words_are_scored_apart(scores):
    good = scores[1]
    assert (good.name, good.num_words, good.num_unseen) == ("good", 6, 3)
    # right: the cat sleeps | bird; wrong: runs as a noun, and a tag that training lacks
    assert good.counts.tolist() == [[3, 3], [1, 2], [0, 1]]
    assert good.unseen_counts.tolist() == [[1, 1], [1, 1], [0, 1]]
    assert good.accuracy == pytest.approx(100 * 4 / 6)
    assert good.seen == pytest.approx(100 * 2 / 3)
    assert good.unseen == pytest.approx(100 * 2 / 3)


def test_the_baseline_gives_each_word_its_most_frequent_tag(scores):
    from elmokit.probes.pos import MAJORITY

    baseline = scores[0]
    # the, cat right; runs is a verb; of all words the most frequent tag (a tie) is the first met
    assert baseline.name == MAJORITY
    assert baseline.counts[0].tolist() == [2, 3]
    assert baseline.seen == pytest.approx(100 * 2 / 3)


def test_the_same_call_gives_the_same_scores():
    from elmokit.probes.pos import probe_pos

    random = np.random.default_rng(0)
    table = {word: random.normal(size=4) for word in KINDS}
    train, dev = [tagged(t) for t in TRAIN], [tagged(t) for t in DEV]
    one, other = (probe_pos([TableSource(table)], train, dev)[1] for _ in range(2))
    np.testing.assert_array_equal(one.counts, other.counts)


def test_sentences_without_words_are_refused():
    from elmokit.probes.pos import probe_pos

    with pytest.raises(ValueError, match=r"`train` .*`dev` .* 1 .* 0\b"):
        probe_pos([TableSource({"a": [1]})], [tagged("a/DET")], [])


def test_classifiers_are_trained_on_the_device():
    from elmokit.probes.pos import probe_pos

    source = TableSource({word: np.eye(3)[kind] for word, kind in KINDS.items()})
    with pytest.raises(RuntimeError, match="meta tensor"):
        probe_pos([source], [tagged(t) for t in TRAIN], [tagged(t) for t in DEV], device="meta")


def test_a_classifier_that_does_not_converge_is_told(monkeypatch, caplog):
    from elmokit.probes import linear as linear_probe
    from elmokit.probes.pos import probe_pos

    monkeypatch.setattr(linear_probe, "MAX_ITERATIONS", 1)
    table = {word: np.eye(3)[kind] for word, kind in KINDS.items()}
    probe_pos([TableSource(table)], [tagged(t) for t in TRAIN], [tagged(t) for t in DEV])
    assert "table: the classifier did not converge in 1 iterations" in caplog.text
