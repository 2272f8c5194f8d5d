"""The arms of the contest: they learn, see what they may see, and score the given words."""

import itertools
import sys
from types import SimpleNamespace

import pytest
import torch

from elmokit.corpus.shards import ShardSet, write_shards
from elmokit.text.word_vocab import WordVocab

from ..builders.embedding_models import random_sentences

ARMS = ("lstm", "causal", "masked", "characters")
WORDS = ["The", "bank", "of", "the", "river", "froze", "."]


@pytest.fixture
def contest(program):
    return program("contest_train", folder="benchmarks"), sys.modules["contest_networks"]


@pytest.fixture
def arm(contest, request):
    torch.manual_seed(0)
    vocab = WordVocab(["<S>", "</S>", "<UNK>", *WORDS])
    return contest[0].new_arm(request.param, vocab, seed=0).eval()


@pytest.mark.parametrize("arm", ARMS, indirect=True)
@torch.inference_mode()
def test_an_arm_gives_a_sentence_the_same_layers_and_scores_in_any_batch(arm):
    short = WORDS[:3]
    together, (alone,) = arm.layers([WORDS, short]), arm.layers([short])
    assert [layers.shape[1] for layers in together] == [len(WORDS), len(short)]
    torch.testing.assert_close(together[1], alone, atol=1e-5, rtol=0)
    both, (one,) = arm.nats([WORDS, short]), arm.nats([short])
    for way, nats in one._asdict().items():
        if nats is not None:
            assert len(nats) == len(short) + (way != "both_sides")
            assert getattr(both[1], way) == pytest.approx(nats, abs=1e-4)


@pytest.mark.parametrize("arm", ARMS, indirect=True)
@torch.inference_mode()
def test_a_score_depends_on_what_its_direction_has_read(arm):
    changed = [*WORDS[:4], "walrus", *WORDS[5:]]
    before, after = arm.nats([WORDS])[0], arm.nats([changed])[0]
    if before.both_sides is not None:
        assert before.both_sides != pytest.approx(after.both_sides, abs=1e-6)
        return
    # forward, the words before the changed one are predicted from the same text; backward, those
    # after it, from the end: their scores stand in the order of the text
    assert before.forward[:4] == pytest.approx(after.forward[:4], abs=1e-5)
    assert before.forward[5] != pytest.approx(after.forward[5], abs=1e-6)
    assert before.backward[5:7] == pytest.approx(after.backward[5:7], abs=1e-5)
    assert before.backward[3] != pytest.approx(after.backward[3], abs=1e-6)


@pytest.mark.parametrize("name", ARMS)
def test_an_arm_learns_from_a_repeated_text(contest, tmp_path, name, monkeypatch):
    train, networks = contest
    monkeypatch.setattr(networks.ARMS[name], "rows", 24 if name == "lstm" else 4)
    sentences = random_sentences(200)
    write_shards(sentences, tmp_path / "shards", tokens_per_shard=5000)
    words = sorted({word for sentence in sentences for word in sentence})
    vocab = WordVocab(["<S>", "</S>", "<UNK>", *words])
    arm = train.new_arm(name, vocab, seed=0)
    clock = itertools.count()  # an update a second, on any machine
    monkeypatch.setattr(train, "time", SimpleNamespace(process_time=lambda: next(clock)))
    facts = train.train(arm, ShardSet.open(tmp_path / "shards"), vocab, seconds=8.0, rate=0.004)
    assert facts["updates"] == 7
    assert facts["loss"] < facts["first_loss"] - 0.05
