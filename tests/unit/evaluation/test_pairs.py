"""Minimal pairs: scores are sums of surprisals, figures count them, files say what is wrong."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest

from elmokit.errors import FormatError
from elmokit.evaluation import pairs as minimal
from elmokit.evaluation.pairs import Pair, PairScores, compare, figures_by, figures_of, read_pairs
from elmokit.evaluation.surprisal import surprisal
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer

from ...builders.command_line import elmokit

GOOD, BAD = "the boat lay by the bank .", "the boat lie by the bank ."
PAIRS = [
    Pair(good=GOOD, bad=BAD, labels={"kind": "verb"}),
    Pair(good="river ship", bad="ship river", labels={"kind": "order"}),
    Pair(good=BAD, bad=GOOD, labels={"kind": "verb"}),
]
ROWS = [{"sentence_good": one.good, "sentence_bad": one.bad, **one.labels} for one in PAIRS]
TEXTS = {
    "pairs.jsonl": "\n".join(map(json.dumps, ROWS)),
    "pairs.tsv": "\n".join(["\t".join(ROWS[0]), *("\t".join(row.values()) for row in ROWS)]),
    "pairs.csv": "\n".join([",".join(ROWS[0]), *(",".join(row.values()) for row in ROWS)]),
}


@pytest.fixture(scope="module")
def scores(model):
    scorer = TextScorer(model, precision="fp32", batch_size=2)
    tokenizer = build_tokenizer(TokenizerConfig(name="whitespace"))
    return minimal.score_pairs(scorer, tokenizer, PAIRS)


def test_scores_are_the_sums_of_the_surprisals(model, scores):
    for side, sentences in (
        (scores.good, [one.good for one in PAIRS]),
        (scores.bad, [one.bad for one in PAIRS]),
    ):
        for column, sentence in enumerate(sentences):
            rows = list(surprisal(model, [sentence.split()], precision="fp32"))
            for row, way in enumerate(("forward", "backward")):
                total = sum(getattr(word, way) for word in rows)
                assert side[row, column] == pytest.approx(total, rel=1e-5)
            assert side[2, column] == pytest.approx(side[0, column] + side[1, column])


def test_sentences_are_normalized_as_the_model_reads_them(model):
    scorer = TextScorer(model, precision="fp32")
    tokenizer = build_tokenizer(TokenizerConfig(name="whitespace"))
    pairs = [Pair(good="the anti-war boat", bad="the anti\u2010war boat")]
    scores = minimal.score_pairs(scorer, tokenizer, pairs)
    assert scorer.form == "plain-1"
    assert np.array_equal(scores.good, scores.bad)


def test_pairs_of_the_same_tokens_are_told(model, caplog):
    pairs = [Pair(good="the  bank", bad="the bank", labels={}), *PAIRS]
    tokenizer = build_tokenizer(TokenizerConfig(name="whitespace"))
    minimal.score_pairs(TextScorer(model, precision="fp32"), tokenizer, pairs)
    assert "both sentences of 1 pair have" in caplog.text
    assert "'the  bank'" in caplog.text


def test_a_pair_turned_round_has_the_other_outcome(scores):
    for reading in minimal.SCORINGS:
        first, _, turned = scores.outcomes(reading)
        assert first == 1 - turned
    by_kind = figures_by(scores, PAIRS, "kind")
    assert list(by_kind) == ["verb", "order"]
    assert by_kind["verb"].pairs == 2
    assert by_kind["verb"].readings["summed"].accuracy == 0.5


def made(outcomes, unknown=()):
    """Scores with these outcomes in every reading."""
    good = np.zeros((3, len(outcomes)))
    bad = np.tile(np.array(outcomes, dtype=float) - 0.5, (3, 1))
    return PairScores(good, bad, np.isin(np.arange(len(outcomes)), unknown))


def test_ties_count_as_half_and_pairs_with_unknown_words_are_shown_apart():
    figures = figures_of(made([1, 1, 0, 0.5], unknown=[0, 3]))
    forward = figures.readings["forward"]
    assert (forward.accuracy, forward.ties) == (0.625, 0.25)
    assert (figures.pairs, figures.unknown) == (4, 0.5)
    assert figures.without_unknown["forward"] == 0.5
    assert figures_of(made([1], unknown=[0])).without_unknown["forward"] is None


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (1, 0), (12, 4), (700, 640), (9000, 9100)])
def test_the_p_value_is_that_of_an_exact_sign_test(better, worse):
    first = made([0] * better + [1] * worse + [1])
    second = made([1] * better + [0] * worse + [1])
    result = compare(first, second, "forward")
    expected = binomtest(better, better + worse).pvalue if better + worse else 1.0
    assert result.p == pytest.approx(expected, rel=1e-6)
    assert result.difference == pytest.approx((better - worse) / (better + worse + 1))
    assert result.low <= result.difference <= result.high


@pytest.mark.parametrize("name", TEXTS)
def test_files_of_every_kind_hold_the_same_pairs(name, write):
    assert read_pairs(write(TEXTS[name] + "\n", name=name)) == PAIRS


def test_an_interval_of_equal_outcomes_is_that_of_the_binomial_distribution():
    for outcome in (0.0, 1.0):
        share = minimal.share_of(np.full(7, outcome))
        expected = binomtest(int(7 * outcome), 7).proportion_ci()
        assert (share.low, share.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.e2e
def test_the_command_writes_a_row_for_each_model_and_pair(write, tmp_path, model):
    for name in ("model", "other"):
        model.save(tmp_path / name)
    arguments = ["pairs", tmp_path / "model", write(TEXTS["pairs.jsonl"], name="pairs.jsonl")]
    printed = elmokit(
        *arguments, "--compare", tmp_path / "other", "--json", "-o", tmp_path / "rows.tsv"
    )
    (compared, *_) = json.loads(printed.stdout)["comparisons"][str(tmp_path / "other")]
    assert compared["p"] == 1
    header, *rows = (tmp_path / "rows.tsv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 2 * 3
    assert "kind" in header.split("\t")
    elmokit(*arguments, "--by", "nothing", expect=2)
    arguments[-1] = write("\n" + TEXTS["pairs.jsonl"], name="pairs.json")  # no suite
    elmokit(*arguments)
    own_output = ["pairs", tmp_path / "model", tmp_path / "rows.tsv"]
    again = elmokit(*own_output, "-o", tmp_path / "b.tsv", expect=2)
    assert "'model' is a column of the output" in again.stderr
    assert elmokit(*own_output).stdout
    twice = elmokit(*arguments, "--compare", tmp_path / "model", "--compare", "en", expect=2)
    assert "model' twice" in twice.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"sentence_good": "a b"}'), ("a.txt", "a b\nc d"), ("a.jsonl", "no json"),
        ("a.jsonl", '{"sentence_good": "a", "sentence_bad": " "}'), ("a.jsonl", "[1]"),
        ("a.jsonl", '{"sentence_good": "a", "sentence_bad": "a"}'), ("a.tsv", "good\tbad\na\tb"),
        ("a.tsv", "sentence_good\tsentence_bad\na\tb\tc"),
        ("a.tsv", "sentence_good\tsentence_bad\tsentence_good\na\tb\tc"),
    ],
)  # fmt: skip
def test_what_is_no_pair_is_named_with_its_line(name, text, write):
    with pytest.raises(FormatError, match=rf"{name}.*line \d"):
        read_pairs(write(text, name=name))
