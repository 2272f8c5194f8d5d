"""Surprisal: the scores of a perplexity, word by word, with what was expected instead."""

import math
import os
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import torch

from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.corpus.readers import ReadReport, TextLine
from elmokit.evaluation import text_scorer
from elmokit.evaluation.perplexity import perplexity
from elmokit.evaluation.surprisal import surprisal, surprisal_of_lines
from elmokit.evaluation.text_scorer import open_scorer
from elmokit.text.spelling import SpellingModel
from elmokit.text.tokenizers.registry import TokenizerConfig

from ...builders.training_models import VOCAB, random_sentences, toy_model

WAYS = ("forward", "backward", "mean")
SENTENCES = [*random_sentences(23), [], ["river", "ship"]]


@torch.no_grad()
def plain(model, sentence):
    """Log-probabilities (2, n + 1, V) at the rows of a sentence, through `BiLM.forward`."""
    top = model(model.encode([sentence])).layers[-1][0]
    dim = model.config.lstm.projection_dim
    backward = top[1:, dim:].roll(-1, 0)  # its first output predicts <S>, the last row
    outputs = torch.stack((top[:-1, :dim], backward))
    return (outputs @ model.softmax.weight.T + model.softmax.bias).log_softmax(-1)


@pytest.fixture(params=["at once", "in small batches"])
def together(request, monkeypatch):
    """How much is read and computed together."""
    if request.param == "in small batches":
        monkeypatch.setattr(text_scorer, "BUFFER_TOKENS", 12)
        monkeypatch.setattr(text_scorer, "BATCH_TOKENS", 7)


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize(("num_top", "word_input"), [(0, False), (3, False), (3, True)])
def test_rows_equal_a_plain_computation_through_the_whole_model(backend, num_top, word_input):
    model = toy_model(word_input=word_input)
    rows = iter(surprisal(model, SENTENCES, top=num_top, state="reset", precision="fp32"))
    for number, sentence in enumerate(SENTENCES):
        logs = plain(model, sentence) if sentence else torch.empty(2, 0, len(VOCAB))
        for index in range(logs.shape[1]):
            row = next(rows)
            is_end = index == len(sentence)
            word = "</S>" if is_end else sentence[index]
            assert (row.sentence, row.index, row.word) == (number, index, word)
            assert row.is_unknown == (word not in VOCAB)
            targets = ("</S>", "<S>") if is_end else (word, word)
            found = []
            for way, target, log in zip(
                ("forward", "backward"), targets, logs[:, index], strict=True
            ):
                bits = -log / math.log(2)
                target_id = VOCAB.word_id(target)
                assert getattr(row, way) == pytest.approx(float(bits[target_id - 1]), abs=1e-4)
                found.append(getattr(row, way))
                assert getattr(row, f"{way}_rank") == 1 + int((log > log[target_id - 1]).sum())
                entropy = float((log.exp() * bits).sum())
                assert getattr(row, f"{way}_entropy") == pytest.approx(entropy, abs=1e-4)
                probs, classes = log.exp().topk(num_top)
                top = getattr(row, f"{way}_top")
                assert [one.word for one in top] == VOCAB.decode((classes + 1).tolist())
                assert [one.probability for one in top] == pytest.approx(probs.tolist(), abs=1e-5)
            assert row.mean == pytest.approx(sum(found) / 2)
    assert next(rows, None) is None


@pytest.mark.parametrize(
    ("kind", "state", "precision"),
    [("full", "reset", "fp32"), ("sampled", "warm", "bf16"), ("adaptive", "warm", "auto")],
)
def test_two_to_the_mean_is_the_perplexity(kind, state, precision):
    model = toy_model(softmax=SoftmaxConfig(kind=kind, num_samples=5))
    if kind == "adaptive":
        with torch.no_grad():  # every cluster matters
            for parameter in model.softmax.parameters():
                parameter.normal_(generator=torch.Generator().manual_seed(4))
    rows = surprisal(model, SENTENCES, state=state, precision=precision, batch_size=3)
    columns = np.array([(row.forward, row.backward, row.mean) for row in rows])
    expected = perplexity(model, SENTENCES, state=state, precision=precision)
    assert len(columns) == expected.tokens
    assert 2 ** columns.mean(axis=0) == pytest.approx(
        [expected.forward, expected.backward, expected.mean], rel=1e-6
    )
    report = rows.report()
    assert report.mean == pytest.approx(expected.mean, rel=1e-6)
    assert (report.oov_rate, report.state) == (expected.oov_rate, state)


def test_a_string_has_places_in_itself_and_a_list_has_none():
    model = toy_model(tokenizer=TokenizerConfig(name="simple"))
    text = "“The " + unicodedata.normalize("NFD", "강") + "” of… money"
    rows = list(surprisal(model, [text, ["the", "river"]]))
    first = [row for row in rows if row.sentence == 0]
    written = [text[row.start : row.end] for row in first[:-1]]
    assert written == ["“", "The", unicodedata.normalize("NFD", "강"), "”", "of", "…", "money"]
    assert [row.word for row in first] == ['"', "The", "강", '"', "of", "...", "money", "</S>"]
    assert first[-1].start is None
    assert {row.start for row in rows if row.sentence == 1} == {None}
    assert {(row.file, row.line) for row in rows} == {(None, None)}


def test_lines_of_a_file_have_their_numbers(tmp_path, model):
    model.save(tmp_path / "model")
    read = ReadReport()
    path = Path(os.fsdecode(b"caf\xe9.txt"))  # a name that is not UTF-8 is escaped
    lines = [TextLine(path, 1, "the river"), TextLine(path, 4, "is a")]
    scorer = open_scorer(str(tmp_path / "model"), device="cpu", top=0)
    rows = list(surprisal_of_lines(*scorer, lines, read=read))
    assert {row.file for row in rows} == {r"caf\xe9.txt"}
    assert [(row.line, row.sentence, row.word, row.start) for row in rows] == [
        (1, 0, "the", 0), (1, 0, "river", 4), (1, 0, "</S>", None),
        (4, 1, "is", 0), (4, 1, "a", 3), (4, 1, "</S>", None),
    ]  # fmt: skip
    assert (read.sentences, read.words) == (2, 4)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"top": -1}, ValueError), ({"top": len(VOCAB) + 1}, ValueError),
        ({"state": "carry"}, ValueError), ({"sentences": "the river"}, TypeError),
        ({"unknown": "spelled"}, ValueError),
        ({"model": toy_model(vocab=None, softmax=None)}, ValueError),
    ],
)  # fmt: skip
def test_errors_come_at_the_call_not_at_the_first_row(model, options, error):
    with pytest.raises(error):
        surprisal(**{"model": model, "sentences": SENTENCES, **options})


def test_unknown_words_cost_their_spelling_too():
    model = toy_model()
    sentence = ["the", "walrus", "<UNK>", "boat"]
    model.spelling = SpellingModel.train(["walking", "walnut", "the"])
    as_unk = list(surprisal(model, [sentence], unknown="unk"))
    assert {row.spelling for row in as_unk} == {None}
    rows = list(surprisal(model, [sentence]))
    spelled = model.spelling.nats(["walrus"], VOCAB)[0] / math.log(2)
    for row, plain_row in zip(rows, as_unk, strict=True):
        # a text may say <UNK> itself, which is a word of the vocabulary
        expected = spelled if row.word == "walrus" else 0
        assert row.spelling == pytest.approx(expected)
        for way in WAYS:
            assert getattr(row, way) == pytest.approx(getattr(plain_row, way) + expected, abs=1e-4)
    report, as_unk_report = (perplexity(model, [sentence], unknown=way) for way in ("auto", "unk"))
    assert report.mean == as_unk_report.mean
    assert report.is_spelled
    extra = math.fsum(row.spelling for row in rows)
    num_bytes = len(" ".join(sentence).encode()) + 2
    assert report.bits_per_byte - as_unk_report.bits_per_byte == pytest.approx(extra / num_bytes)
    assert report.bits_per_byte == report.bits_per_byte_spelled


def test_a_word_without_a_letter_costs_no_spelling():
    model = toy_model()
    model.spelling = SpellingModel.train(["walking"])
    row, *_ = surprisal(model, [["\u200e", "the"]], precision="fp32")
    assert (row.is_unknown, row.spelling) == (True, 0)
