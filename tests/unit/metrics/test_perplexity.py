"""From summed log-likelihoods to figures."""

import math

import pytest

from elmokit.metrics.perplexity import PerplexityCounter


def counter(**changes):
    sums = {
        "forward_nats": 20 * math.log(8),
        "backward_nats": 20 * math.log(2),
        "tokens": 20,
        "sentences": 4,
        "unknown_words": 2,
        "text_bytes": 60,
    }
    return PerplexityCounter(**{**sums, **changes})


def test_perplexity_is_exp_of_the_mean_nats_a_target():
    report = counter().report(vocabulary=100, state="reset")
    assert report.forward == pytest.approx(8)
    assert report.backward == pytest.approx(2)


def test_the_mean_is_the_geometric_mean_of_both_directions():
    assert counter().report(vocabulary=100, state="reset").mean == pytest.approx(4)


def test_counts_are_handed_on():
    report = counter().report(vocabulary=100, state="reset")
    assert (report.tokens, report.sentences, report.vocabulary) == (20, 4, 100)


def test_the_oov_rate_is_a_share_of_words_without_sentence_ends():
    assert counter().report(vocabulary=100, state="reset").oov_rate == pytest.approx(2 / 16)


def test_bits_per_byte_have_one_separator_a_target():
    """2 bits a target in the mean, 20 targets, 60 bytes and 20 separators."""
    assert counter().report(vocabulary=100, state="reset").bits_per_byte == pytest.approx(
        2 * 20 / 80
    )


def test_a_hopeless_model_has_an_infinite_perplexity():
    assert (
        counter(forward_nats=20 * 800.0).report(vocabulary=100, state="reset").forward == math.inf
    )


def test_nothing_scored_is_an_error():
    with pytest.raises(ValueError, match="no text"):
        PerplexityCounter().report(vocabulary=100, state="reset")
