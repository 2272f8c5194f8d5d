"""Reading times: surprisals of typed words, and gains of a regression on held-out sentences."""

import json
import re

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.evaluation import reading as times
from elmokit.evaluation.regression import gain, groups_of
from elmokit.evaluation.surprisal import typed_words
from elmokit.text.spelling import SpellingModel
from elmokit.text.tokenizers.registry import TokenizerConfig

from ...builders.command_line import elmokit
from ...builders.training_models import VOCAB, toy_model

SENTENCES = ["the boat, lay by the bank.", "river ship"]


@pytest.fixture(scope="module")
def model():
    return toy_model(tokenizer=TokenizerConfig(name="simple"))


def test_rows_of_a_table_are_looked_up_whatever_their_punctuation_or_named(model):
    typed = typed_words(model, SENTENCES)
    places = [(0, 1), (1, 1)]
    words = times.observe(typed, places, ["Boat", "ship"])
    assert [word.word for word in words] == ["boat,", "ship"]
    columns = times.model_columns("forward", typed, places, spill=2)
    own, mean = [word.forward for word in words], np.mean([word.forward for word in words])
    assert columns.T.tolist() == [own, [typed[0][0].forward, typed[1][0].forward], [mean] * 2]
    for place, text in (((0, 1), "bank"), ((0, 9), "boat"), ((0, -1), "bank")):
        with pytest.raises(InputError, match=rf"'{text}' as word {place[1]}.*--position"):
            times.observe(typed, [place], [text])


def test_a_typed_word_is_as_rare_as_the_rarest_word_that_the_model_reads_in_it(model, write):
    typed = ["boat", "the-boat", "\u201cboat\u201d", "the-zzz", "boat"]
    options = times.ReadingOptions(measures=["time"])
    rows = times.Table(write("\n".join(["word", *typed]), name="t.tsv"))
    ranks = times._frequencies(times.open_bilm(model), rows, options)
    assert ranks[0] == ranks[1] == ranks[2] == ranks[4] < ranks[3]


def test_a_planted_effect_is_found_with_its_slope():
    rng = np.random.default_rng(3)
    sentence = np.repeat(np.arange(60), 8)
    baseline = rng.normal(size=(len(sentence), 3))
    predictor = rng.normal(size=(len(sentence), 2)) * 4
    measure = 250 + baseline @ [5.0, -3.0, 1.0] + 3 * predictor[:, 0]
    result = gain(measure + rng.normal(size=len(sentence)), baseline, predictor, sentence)
    assert result.low > 0
    assert result.slope == pytest.approx(3.0, rel=0.02)
    assert result.low < result.nats < result.high
    # 3 * 4 against a noise of 1: nearly all of the variance that the baseline leaves
    assert result.r2_points > 50


def test_items_are_held_out_whole_if_there_are_enough():
    sentence = np.repeat(np.arange(80), 3)
    stories = [str(number // 2) for number in sentence]
    groups, name = groups_of(sentence, stories)
    assert (name, len(set(groups.tolist()))) == ("item", 40)
    assert all(len(set(groups[sentence // 2 == story].tolist())) == 1 for story in range(40))
    assert groups_of(sentence, [str(number // 20) for number in sentence])[1] == "sentence"
    assert groups_of(sentence, None)[0] is sentence


@pytest.mark.parametrize("value", [0.0, 0.1, 300.0, 312.7])
def test_a_measure_that_does_not_vary_is_refused(value):
    columns = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.raises(InputError, match="does not vary"):
        gain(np.full(200, value), columns[:, :1], columns[:, 1:], np.arange(200))


def table(model, tmp_path, *, whole):
    """Sentences of seven words with a measure made of their surprisals."""
    rng = np.random.default_rng(0)
    sentences = [" ".join(rng.choice(VOCAB.words[3:], size=7)) + " ." for _ in range(40)]
    rows = []
    for number, words in enumerate(typed_words(model, sentences, precision="fp32")):
        for place, word in enumerate(words, start=1):
            time = 200 + 4 * word.forward + rng.normal()
            rows.append([f"i{number}", str(place), word.word, f"{time:.3f}", sentences[number]])
    header = ["item", "position", "word", "time", "sentence"]
    path = tmp_path / "table.tsv"
    lines = ["\t".join(row if whole else row[:4]) for row in [header, *rows]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.e2e
@pytest.mark.parametrize("whole", [True, False])
def test_the_command_finds_the_effect_of_a_table(model, tmp_path, whole):
    model.save(tmp_path / "model")
    path = table(model, tmp_path, whole=whole)
    words = ["reading", tmp_path / "model", path, "--measure", "time", "--precision", "fp32"]
    words += ["--sentence", "sentence"] if whole else []
    result = json.loads(elmokit(*words, "--json", "-o", tmp_path / "tidy.tsv").stdout)
    assert result["gains"]["time"]["forward"]["slope"] == pytest.approx(4, rel=0.05)
    assert result["gains"]["time"]["forward"]["low"] > 0
    assert result["words"] == 40 * 7
    tidy = (tmp_path / "tidy.tsv").read_text(encoding="utf-8").splitlines()
    assert len(tidy) == 1 + 40 * 7
    assert {"forward_1", "length_1", "frequency_1"} < set(tidy[0].split("\t"))
    assert whole or [line.split("\t")[0] for line in tidy[::80]] == ["item", "i11", "i22", "i34"]
    assert "forward_entropy" in elmokit(*words).stdout
    for name, problem in {
        "time": "'time' twice",
        "length_1": "is a name that the result uses",
    }.items():
        assert problem in elmokit(*words, "--against", name, expect=2).stderr


@pytest.mark.e2e
def test_letters_of_unknown_words_count_only_if_asked_for(model, tmp_path):
    speller = toy_model(tokenizer=TokenizerConfig(name="simple"))
    speller.spelling = SpellingModel.train(["walking", "walnut", "the"])
    speller.save(tmp_path / "model")
    path = table(model, tmp_path, whole=False)
    text = re.sub(r"(i0\t2\t)\w+", r"\1walrus", path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")
    words = ["reading", tmp_path / "model", path, "--measure", "time", "--json"]
    for more, is_spelled in ([], False), (["--unknown", "spelled"], True):
        result = json.loads(elmokit(*words, *more).stdout)
        assert result["unknown"] > 0
        assert result["spelled"] is is_spelled


@pytest.mark.e2e
@pytest.mark.parametrize("edit", [
    lambda text: text.replace("item\t", "thing\t"), lambda text: text + "i99\t1\tword\tslow\n",
    lambda text: text.replace("\t1\t", "\t\t", 1), lambda text: text + "i99\t1\n",
    lambda text: text.replace("\t1\t", "\t1.5\t", 1), lambda text: text + "i99\t1\tword\tinf\n",
    lambda text: text.replace("position\tword", "word\tword"),
])  # fmt: skip
def test_a_wrong_table_is_refused(model, tmp_path, edit):
    model.save(tmp_path / "model")
    path = table(model, tmp_path, whole=False)
    path.write_text(edit(path.read_text(encoding="utf-8")), encoding="utf-8")
    result = elmokit("reading", tmp_path / "model", path, "--measure", "time", expect=2)
    assert "table.tsv" in result.output
    assert "--column" not in result.output  # an option of other commands
