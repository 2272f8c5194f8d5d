"""Perplexity of a model on a text: a property of both, not of how it is computed.

`test_surprisal.py` holds it equal to a plain computation.
"""

import functools
import json
import math

import pytest

from elmokit.evaluation.perplexity import PerplexityCounter
from elmokit.evaluation.perplexity import perplexity as perplexity_in
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.weights.locate import PACKAGED_MODELS
from elmokit.weights.model_dir import load_model

from ...builders.command_line import elmokit
from ...builders.training_models import VOCAB, random_sentences, toy_model

SENTENCES = random_sentences(23)
perplexity = functools.partial(perplexity_in, precision="fp32")


def test_bf16_moves_the_figures_within_its_error_budget():
    model = load_model("en")
    text = (PACKAGED_MODELS.parent / "demo" / "en.txt").read_text(encoding="utf-8")
    sentences = [line.split() for line in text.splitlines()[:100]]  # 1,000 words
    exact = perplexity(model, sentences)
    quick = perplexity_in(model, sentences, precision="bf16")
    # 2.6e-4 on all of this text, give or take 1.5e-4 on a tenth of it (docs/log.md)
    for name in ("forward", "backward", "mean"):
        assert getattr(quick, name) == pytest.approx(getattr(exact, name), rel=1e-3), name
    assert quick != exact


@pytest.mark.e2e
def test_a_stored_model_on_a_file_that_has_bad_lines(model, tmp_path):
    model.save(tmp_path / "model")
    lines = "".join(" ".join(sentence) + "\n" for sentence in SENTENCES)
    (tmp_path / "text.txt").write_bytes(b"\n" + lines.encode() + b"a\0b\n")
    words = ["perplexity", tmp_path / "model", tmp_path / "text.txt", "--device", "cpu", "--json"]
    report = json.loads(elmokit(*words).stdout)
    expected = perplexity_in(model, SENTENCES)
    assert report["forward"] == pytest.approx(expected.forward, rel=2e-6)
    assert report["backward"] == pytest.approx(expected.backward, rel=2e-6)
    assert report["skipped"] == {"blank": 1 + SENTENCES.count([]), "nul": 1}


def test_strings_are_split_by_the_models_tokenizer_and_lists_are_words(tmp_path):
    model, words = toy_model(), [word for sentence in SENTENCES for word in sentence][:9]
    by_words = perplexity(model, [words], state="reset")
    assert by_words.tokens == 10
    model.save(tmp_path / "model")  # a model may be named
    for named in (model, tmp_path / "model"):
        assert perplexity(named, [" ".join(words)], state="reset") == by_words


def test_sentences_start_from_the_warm_state_unless_told_otherwise(model):
    warm, reset = perplexity(model, SENTENCES), perplexity(model, SENTENCES, state="reset")
    assert (warm.state, reset.state) == ("warm", "reset")
    assert warm.forward != pytest.approx(reset.forward, rel=1e-6)


def test_figures_by_hand():
    sums = {
        "forward_nats": 20 * math.log(8), "backward_nats": 20 * math.log(2), "tokens": 20,
        "sentences": 4, "unknown_words": 2, "text_bytes": 60, "unknown_bytes": 6,
    }  # fmt: skip
    scorer = TextScorer(toy_model(), state="reset", precision="fp32")
    report = PerplexityCounter(**sums).report(scorer)
    assert (report.forward, report.backward) == pytest.approx((8, 2))
    assert report.mean == pytest.approx(4)  # the geometric mean
    assert report.oov_rate == pytest.approx(2 / 16)  # of words, without sentence ends
    # 2 bits a target in the mean, 20 targets, 60 bytes and 20 separators
    assert report.bits_per_byte == pytest.approx(2 * 20 / 80)
    assert (report.tokens, report.sentences, report.vocabulary) == (20, 4, len(VOCAB))
    assert (report.state, report.precision) == ("reset", "fp32")
    assert report.bits_per_byte_spelled == pytest.approx((2 * 20 + 8 * 6) / 80)
    assert PerplexityCounter(**{**sums, "forward_nats": 16e3}).report(scorer).forward == math.inf
