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


def test_figures_by_hand():
    report = counter().report(vocabulary=100, state="reset")
    assert (report.forward, report.backward) == pytest.approx((8, 2))
    assert report.mean == pytest.approx(4)  # the geometric mean
    assert report.oov_rate == pytest.approx(2 / 16)  # of words, without sentence ends
    # 2 bits a target in the mean, 20 targets, 60 bytes and 20 separators
    assert report.bits_per_byte == pytest.approx(2 * 20 / 80)
    assert (report.tokens, report.sentences, report.vocabulary) == (20, 4, 100)
    assert (report.state, report.precision) == ("reset", "fp32")
    spelled = counter(unknown_bytes=6).report(vocabulary=100, state="warm")
    assert spelled.bits_per_byte_spelled == pytest.approx((2 * 20 + 8 * 6) / 80)


def test_a_hopeless_model_has_an_infinite_perplexity():
    report = counter(forward_nats=20 * 800.0).report(vocabulary=100, state="reset")
    assert report.forward == math.inf


def test_nothing_scored_is_an_error():
    with pytest.raises(ValueError, match="no text"):
        PerplexityCounter().report(vocabulary=100, state="reset")
