"""Tests of the probes: by name, and parts of speech."""

import numpy as np
import pytest

from elmokit.cli.commands.probe import _table
from elmokit.errors import FormatError, InputError
from elmokit.metrics.task_scores import accuracy_of
from elmokit.probes import pos
from elmokit.probes.inputs import read_pos_data
from elmokit.probes.pos import MAJORITY, probe_pos
from elmokit.probes.probe import Figure, Probe, plain_score, run_probe, training_gains
from elmokit.text.tokenizers.registry import TokenizerConfig

from ...builders.probe_sources import TableSource, tagged
from ...builders.task_models import toy_model


def counts(*right):
    """The first two units are those of a, the others those of b."""
    return np.array([[*right[:1], 1, 0, 0], [right[1], 1, 0, 0], [0, 0, right[2], 1]], "f8")


def test_layers_are_compared_with_the_same_layers_untrained():
    probe = Probe(
        read=lambda data, test, units: None, words=lambda data: set(),
        measure=lambda *arguments: (), columns={"a": "A", "b": "B"},
        note="", counts="counts",
        figures=(Figure("a", accuracy_of, slice(0, 2)), Figure("b", accuracy_of, slice(2, 4))),
    )  # fmt: skip
    scores = {
        "baseline": [counts(1, 1, 1)], "layer 0": [counts(1, 1, 0)],
        "layer 1": [counts(1, 1, 1)], "random 1": [counts(1, 0, 1)], "static": [counts(1, 1, 1)],
    }  # fmt: skip
    gains = training_gains(probe, scores)
    assert [(one.name, one.untrained, one.figure) for one in gains] == [
        ("layer 1", "random 1", "a"), ("layer 1", "random 1", "b"),
    ]  # fmt: skip
    assert [(one.difference, one.num_units) for one in gains] == [(50, 2), (0, 1)]
    assert gains[0].low < 0 < 50 < gains[0].high


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("syntax", {}), ("pos", {"test": "semeval2007"}), ("pos", {"units": "eojeol"}),
        ("neighbors", {"units": "words"}), ("pos", {"layers": 7}), ("pos", {"precision": "fp8"}),
    ],
)  # fmt: skip
def test_what_cannot_be_probed_is_told(tmp_path, name, options):
    toy_model().save(tmp_path / "model")
    with pytest.raises(InputError):
        run_probe(name, tmp_path / "data", str(tmp_path / "model"), **options)


def test_training_of_one_tag_is_refused(tmp_path):
    for split in ("train", "dev"):
        row = "\t".join(["1", "oh", "oh", "INTJ", *"______"])
        (tmp_path / f"{split}.conllu").write_text(f"{row}\n\n", encoding="utf-8")
    with pytest.raises(FormatError, match="all words of the training set"):
        read_pos_data(tmp_path)


def test_where_no_word_is_unseen_there_is_no_accuracy():
    scores = probe_pos([], TRAIN, TRAIN)
    assert scores[0].seen == scores[0].accuracy > 50
    assert np.isnan(scores[0].unseen)
    *_, row, _ = _table(pos.PROBE, list(map(plain_score, scores)))
    assert row.split()[-1] == f"{scores[0].seen:.2f}", "no column of unseen words"
    assert scores[0].num_unseen == 0


TEXT = "the/DET dog/NOUN runs/VERB | the/DET runs/NOUN | a/DET cat/NOUN runs/VERB | run/VERB"
TRAIN = [tagged(text) for text in TEXT.split("|")]
DEV = [tagged(text) for text in ("the/DET cat/NOUN sleeps/VERB", "runs/NOUN bird/NOUN", "oh/INTJ")]
KINDS = {"the": 0, "a": 0, "dog": 1, "cat": 1, "bird": 1, "runs": 2, "run": 2, "sleeps": 2, "oh": 2}
TABLE = {word: np.eye(3)[kind] for word, kind in KINDS.items()}


def test_seen_and_unseen_words_are_scored_apart():
    pytest.importorskip("sklearn")
    baseline, good = probe_pos([TableSource(TABLE, ("good",))], TRAIN, DEV)
    assert (good.name, good.num_words, good.num_unseen) == ("good", 6, 3)
    # right: the cat sleeps | bird; wrong: runs as a noun, and a tag that training lacks
    assert good.counts.tolist() == [[3, 3], [1, 2], [0, 1]]
    assert (good.accuracy, good.seen, good.unseen) == pytest.approx((200 / 3,) * 3)
    # the, cat right; runs is a verb; of all words the most frequent tag (a tie) is the first met
    assert (baseline.name, baseline.counts[0].tolist()) == (MAJORITY, [2, 3])
    assert baseline.seen == pytest.approx(200 / 3)


def test_no_layer_gains_from_the_size_of_its_activations():
    pytest.importorskip("sklearn")
    random = np.random.default_rng(0)
    x, dev = random.normal(size=(60, 4)), random.normal(size=(2000, 4))
    labels = (x @ random.normal(size=(4, 3)) + random.gumbel(size=(60, 3))).argmax(axis=1)
    scale, offset = 10 ** random.uniform(-2, 1, 4), random.normal(size=4)
    tags = [f"T{label}" for label in labels]
    plain, scaled = (
        pos._classify(rows.astype("f4"), tags, dev_rows.astype("f4"))
        for rows, dev_rows in ((x, dev), (x * scale + offset, dev * scale + offset))
    )
    assert np.mean(np.array(plain) == np.array(scaled)) > 0.998


def test_units_are_the_tokenizers(tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("kiwipiepy")
    rows = "".join(
        f"{number}\t고향은\t고향+은\t{tag}\tncn+jxt" + "\t_" * 5 + "\n"
        for number, tag in enumerate(("NOUN", "VERB"), 1)
    )
    for split in ("train", "dev"):
        (tmp_path / f"{split}.conllu").write_text(f"{rows}\n", encoding="utf-8")
    for tokenizer, units in (("korean", "morphemes"), ("whitespace", "words")):
        toy_model(tokenizer=TokenizerConfig(name=tokenizer)).save(tmp_path / tokenizer)
        result = run_probe("pos", tmp_path, str(tmp_path / tokenizer), layers="top")
        assert result.metadata["units"] == units
