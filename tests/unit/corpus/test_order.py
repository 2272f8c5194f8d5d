import numpy as np
import pytest


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    from elmokit.corpus.shards import write_shards

    sentences = [[f"w{i}"] * (1 + i % 7) for i in range(40)]
    return write_shards(sentences, tmp_path_factory.mktemp("shards"), tokens_per_shard=30)


def test_shards_come_in_a_permutation_drawn_each_epoch(shards):
    from elmokit.corpus.order import SentenceOrder

    order = SentenceOrder(shards, seed=0, shuffle="sentences")
    orders = [order.shards(epoch).tolist() for epoch in range(5)]
    assert all(sorted(one) == list(range(len(shards))) for one in orders)
    assert len(set(map(tuple, orders))) > 1


def test_sentences_come_in_a_permutation_of_seed_epoch_and_shard(shards):
    from elmokit.corpus.order import SentenceOrder

    order = SentenceOrder(shards, seed=3, shuffle="sentences")
    expected = np.random.default_rng((3, 2, 1)).permutation(shards.entries[1].num_sentences)
    assert np.array_equal(order.sentences(2, 1), expected)


def test_without_shuffling_nothing_moves(shards):
    from elmokit.corpus.order import SentenceOrder

    order = SentenceOrder(shards, seed=3, shuffle="none")
    assert order.shards(4).tolist() == list(range(len(shards)))
    assert order.sentences(4, 1).tolist() == list(range(shards.entries[1].num_sentences))
