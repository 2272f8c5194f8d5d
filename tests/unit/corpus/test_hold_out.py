import pytest

from elmokit.corpus.hold_out import HoldOut


def corpus(num_sentences):
    return [[f"word{i}", "."] for i in range(num_sentences)]


USUAL = {"share": 0.01, "max_sentences": 2000}


def split(num_sentences, **settings):
    hold_out = HoldOut(**USUAL | settings)
    train = list(hold_out.split(corpus(num_sentences)))
    return train, hold_out.sentences


@pytest.mark.parametrize("num_sentences", [0, 1, 5, 6, 11, 84, 999, 5003])
def test_every_sentence_is_on_exactly_one_side(num_sentences):
    train, held = split(num_sentences, share=0.05, max_sentences=60)
    assert sorted(train + held) == sorted(corpus(num_sentences))


def test_the_limit_holds_and_blocks_come_from_everywhere():
    _, held = split(20_000, share=0.1, max_sentences=400)
    assert len(held) == 400
    positions = [int(words[0][4:]) for words in held]
    assert positions == sorted(positions)  # corpus order
    for tenth in range(10):
        assert any(tenth * 2000 <= position < (tenth + 1) * 2000 for position in positions)


def test_a_corpus_of_one_block_is_all_for_training():
    train, held = split(4, block_sentences=5)
    assert (len(train), len(held)) == (4, 0)


def test_words_are_limited_too():
    hold_out = HoldOut(**USUAL | {"share": 0.5, "max_words": 1000, "block_sentences": 1})
    train = list(hold_out.split([["w"] * 90] * 200))
    assert len(hold_out.sentences) == 11
    assert len(train) == 189


def test_the_split_repeats_and_depends_on_the_seed():
    assert split(3000) == split(3000)
    assert split(3000) != split(3000, seed=1)
