import json
from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest

from elmokit.corpus.shards import write_shards
from elmokit.corpus.stream import WindowStream, with_more_rows
from elmokit.errors import FormatError
from elmokit.text.char_vocab import CharVocab
from elmokit.text.word_vocab import WordVocab

from ...builders.windows import decoded

SENTENCES = [[f"w{i}"] * (1 + i % 7) for i in range(40)]


@pytest.fixture(scope="module")
def vocabs():
    words = ["<S>", "</S>", "<UNK>", *(f"w{i}" for i in range(30))]
    return WordVocab(words), CharVocab()


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return write_shards(SENTENCES, tmp_path_factory.mktemp("shards"), tokens_per_shard=30)


@pytest.fixture
def make_stream(shards, vocabs):
    def make(**settings):
        settings = {"batch_size": 4, "num_steps": 5} | settings
        return WindowStream(settings.pop("shards", shards), *vocabs, **settings)

    return make


def test_every_target_is_read_once_an_epoch(shards, make_stream):
    stream = make_stream()
    assert stream.targets_per_epoch == shards.num_targets == 40 + sum(map(len, SENTENCES))
    one_row = make_stream(batch_size=1, num_steps=1, num_epochs=1)
    words = [decoded(window)[0][0] for window, _ in one_row]
    assert len(words) == shards.num_targets
    expected = [word for sentence in SENTENCES for word in ["<S>", *sentence]]
    assert sorted(words) == sorted(expected)


def test_epochs_differ_and_seeds_differ_and_seeds_repeat(make_stream):
    def words(stream):
        count = 2 * (stream.targets_per_epoch // stream.targets_per_window)
        return [decoded(window) for window, _ in islice(stream, count)]

    first = words(make_stream(seed=1))
    assert first == words(make_stream(seed=1))
    assert first != words(make_stream(seed=2))
    half = len(first) // 2
    assert first[:half] != first[half:]


def test_state_is_small_json_and_tells_progress(make_stream):
    stream = make_stream()
    for step, (_, state) in enumerate(islice(stream, 30), start=1):
        assert state["windows"] == step
        assert state["targets"] == 20 * step
        assert abs(state["epoch"] - state["targets"] / stream.targets_per_epoch) < 1.2
        assert len(json.dumps(state)) < 1000
    assert state["epoch"] == 3


def test_resume_with_more_epochs_goes_on(make_stream):
    *_, (_, state) = make_stream(num_epochs=1)
    longer = [decoded(window) for window, _ in make_stream(num_epochs=2)]
    resumed = [decoded(window) for window, _ in make_stream(num_epochs=2, state=state)]
    assert resumed == longer[state["windows"] :]
    assert resumed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 2}, r"batch_size .*\b4 .*\b2\b"),
        ({"num_steps": 6}, r"num_steps .*\b5 .*\b6\b"),
        ({"seed": 3}, r"seed .*\b0 .*\b3\b"),
        ({"shuffle": "none"}, "shuffle .*'sentences' .*'none'"),
    ],
)
def test_resume_with_other_settings_is_refused(make_stream, settings, message):
    state = next(iter(make_stream()))[1]
    with pytest.raises(ValueError, match=message):
        make_stream(state=state, **settings)


def test_resume_with_other_data_or_vocabulary_is_refused(tmp_path, make_stream, shards, vocabs):
    state = next(iter(make_stream()))[1]
    other = write_shards(SENTENCES[1:], tmp_path)
    hashes = rf"shards .*'{shards.fingerprint}' .*'{other.fingerprint}'"
    with pytest.raises(ValueError, match=hashes):
        make_stream(shards=other, state=state)
    fewer = WordVocab(vocabs[0].words[:-1])
    with pytest.raises(ValueError, match=r"vocabulary .*'\w{64}' .*'\w{64}'"):
        WindowStream(shards, fewer, vocabs[1], batch_size=4, num_steps=5, state=state)


def test_state_of_another_version_is_refused(make_stream):
    with pytest.raises(ValueError, match=r"version None.*version 3"):
        make_stream(state={})


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [None]}, {"group_position": 99}, {"sentence_position": 40},
        *({"rows": [row, None, None, None]} for row in ([99, 0, 1], [0, 30, 1], [0, 0, 9])),
    ],
)  # fmt: skip
def test_a_damaged_state_is_told(make_stream, change):
    state = json.loads(json.dumps(next(iter(make_stream()))[1]))
    with pytest.raises(FormatError, match="stream state"):
        next(iter(make_stream(state=state | change)))


def test_a_corpus_smaller_than_one_window_is_refused(make_stream, shards):
    with pytest.raises(ValueError, match=rf" {shards.num_targets} .* 5000\. .*train\.batch_size"):
        make_stream(batch_size=100, num_steps=50)


def test_too_few_sentences_for_the_rows_are_an_error(tmp_path, make_stream):
    shards = write_shards([["w1"] * 50], tmp_path)
    with pytest.raises(ValueError, match=r" 4 rows x 5 words .* 1 .*batch_size.*unroll_steps"):
        list(make_stream(shards=shards, num_epochs=1))


def test_rows_that_ranks_cannot_share_are_refused(make_stream):
    with pytest.raises(ValueError, match=r"`batch_size` .*world_size, .* 4 .* 3\b"):
        make_stream(world_size=3)


class TestRestarts:
    def test_as_many_rows_as_asked_for_begin_with_a_sentence(self, make_stream):
        windows = [window for window, _ in islice(make_stream(restart_share=0.3), 400)]
        assert np.mean([window.restarts for window in windows]) == pytest.approx(0.3, abs=0.01)
        for window in windows:
            firsts = np.array([row[0] for row in decoded(window)])
            assert set(firsts[window.restarts]) <= {"<S>"}

    def test_the_other_rows_go_on(self, make_stream):
        """The rest of a sentence is skipped where a row restarts, and nowhere else."""
        windows = [window for window, _ in islice(make_stream(restart_share=0.5), 40)]
        for window, following in pairwise(windows):
            ids = window.forward_targets[:, -1], following.forward_inputs[:, 0]
            for target, slot, restarts in zip(*ids, following.restarts, strict=True):
                if not restarts and target != 2:  # 2 is </S>
                    assert following.word_ids[slot] == target

    def test_a_resumed_stream_chooses_the_same(self, make_stream):
        steps = list(islice(make_stream(restart_share=0.5), 12))
        state = json.loads(json.dumps(steps[4][1]))
        resumed = islice(make_stream(restart_share=0.5, state=state), 7)
        for (one, _), (other, _) in zip(steps[5:], resumed, strict=True):
            assert decoded(one) == decoded(other)
            np.testing.assert_array_equal(one.restarts, other.restarts)

    def test_ranks_have_their_rows_of_it(self, make_stream):
        whole = next(iter(make_stream(restart_share=0.5)))[0].restarts
        halves = [
            next(iter(make_stream(restart_share=0.5, rank=rank, world_size=2)))[0].restarts
            for rank in range(2)
        ]
        np.testing.assert_array_equal(np.concatenate(halves), whole)


class TestMoreRows:
    def test_the_old_rows_go_on_and_the_new_begin_a_sentence(self, make_stream):
        steps = list(islice(make_stream(), 7))
        state = with_more_rows(json.loads(json.dumps(steps[5][1])), 6)
        window, after = next(iter(make_stream(batch_size=6, state=state)))
        old = decoded(steps[6][0])
        assert decoded(window)[:4] == old
        for row, begun in zip(decoded(window)[:4], steps[5][1]["rows"], strict=True):
            assert begun is not None or row[0] == "<S>"
        assert {row[0] for row in decoded(window)[4:]} == {"<S>"}
        assert (after["windows"], after["targets"]) == (7, 6 * 20 + 30)

    def test_no_sentence_is_read_twice_or_lost(self, make_stream):
        settings = {"shuffle": "none", "num_steps": 1, "num_epochs": 1}
        first, state = next(iter(make_stream(**settings)))
        longer = make_stream(**settings, batch_size=6, state=with_more_rows(state, 6))
        windows = [first, *(window for window, _ in longer)]
        read = Counter(word for window in windows for row in decoded(window) for word in row)
        expected = Counter(word for sentence in SENTENCES for word in ["<S>", *sentence])
        assert not read - expected
        last = {f"w{i}" for i in range(32, 40)}  # those of the other rows when one has no more
        assert set(expected - read) <= {"<S>", *last}
