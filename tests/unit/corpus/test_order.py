import numpy as np
import pytest

from elmokit.corpus.order import SentenceOrder
from elmokit.corpus.shards import write_shards


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    sentences = [[f"w{i}"] * (1 + i % 7) for i in range(40)]
    return write_shards(sentences, tmp_path_factory.mktemp("shards"), tokens_per_shard=30)


@pytest.fixture
def pairs(monkeypatch):
    """Two shards are shuffled together."""
    monkeypatch.setattr("elmokit.corpus.order.SHARDS_TOGETHER", 2)


def test_groups_of_shards_come_in_another_order_each_epoch(shards, pairs):
    order = SentenceOrder(shards, seed=0, shuffle="sentences")
    drawn = [order.groups(epoch) for epoch in range(5)]
    for groups in drawn:
        assert len(groups) == order.num_groups == -(-len(shards) // 2)
        assert sorted(shard for group in groups for shard in group) == list(range(len(shards)))
        assert {len(group) for group in groups} <= {1, 2}
    assert len({tuple(groups) for groups in drawn}) > 1


@pytest.mark.parametrize("together", [2, 3, 8])
def test_each_group_reads_the_same_mixture(tmp_path, monkeypatch, together):
    shards = write_shards([["w"]] * 57, tmp_path, tokens_per_shard=3)
    monkeypatch.setattr("elmokit.corpus.order.SHARDS_TOGETHER", together)
    order = SentenceOrder(shards, seed=0, shuffle="sentences")
    novels = set(range(len(shards) - 5, len(shards)))
    for epoch in range(5):
        groups = order.groups(epoch)
        assert len(groups) > 2
        assert sorted(shard for group in groups for shard in group) == list(range(len(shards)))
        for counts in ([len(group) for group in groups], [len(novels & {*g}) for g in groups]):
            assert max(counts) - min(counts) <= 1


def test_an_order_that_changes_needs_another_state_version(shards, pairs):
    """States of streams are places in this order: `_STATE_VERSION` of `elmokit.corpus.stream`."""
    order = SentenceOrder(shards, seed=0, shuffle="sentences")
    assert [order.groups(epoch) for epoch in range(2)] == [
        [(0, 3), (1, 4), (2,)],
        [(0, 3), (2,), (1, 4)],
    ]
    assert order.sentences(0, 0)[:5].tolist() == [2, 10, 3, 11, 0]


def test_sentences_of_a_group_come_in_a_permutation_of_seed_epoch_and_group(shards, pairs):
    order = SentenceOrder(shards, seed=3, shuffle="sentences")
    total = sum(shards.entries[shard].num_sentences for shard in order.groups(2)[1])
    expected = np.random.default_rng((3, 2, 1)).permutation(total)
    assert np.array_equal(order.sentences(2, 1), expected)


def test_few_shards_are_one_group(shards):
    order = SentenceOrder(shards, seed=3, shuffle="sentences")
    assert len(shards) <= 8
    assert order.groups(0) == order.groups(1) == [tuple(range(len(shards)))]


def test_without_shuffling_nothing_moves(shards):
    order = SentenceOrder(shards, seed=3, shuffle="none")
    assert order.groups(4) == [(shard,) for shard in range(len(shards))]
    assert order.sentences(4, 1).tolist() == list(range(shards.entries[1].num_sentences))
