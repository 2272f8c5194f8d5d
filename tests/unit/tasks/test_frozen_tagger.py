"""Taggers without PyTorch: the answers of the PyTorch network, whatever it reads."""

from itertools import product

import numpy as np
import pytest
import torch

from elmokit.tasks.frozen_classifier import FrozenClassifier
from elmokit.tasks.frozen_tagger import FrozenTagger, WrittenWords
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.task_bilm import TaskBiLM
from elmokit.tasks.networks.encoder import build_network
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.examples import Examples, predict
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.tasks.tagging import NerTask, PosTask, SrlTask
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, WhitespaceTokenizer
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.vectors.static_vectors import StaticVectors

LABELS = ["O", *(f"{prefix}-{kind}" for kind in ("PER", "LOC") for prefix in "BILU")]
TEXTS = ["Minji Kim sat by the Bank .", "", "서울 에 갔다", "the", "x" * 60 + " by night"]
STATIC = StaticVectors(["the", "night", "서울"], np.eye(3, 5, dtype=np.float32))
INPUTS = [
    {},
    {"static": STATIC, "static_scale": "learned", "positions": "input"},
    {"layer_norm": "token", "state": "warm"},
    {"layer_norm": "batch", "characters": False},
    {"embeddings": "top", "static": STATIC},
    {"embeddings": "static", "static": STATIC, "characters": False},
    *({"embeddings": name} for name in ("layer0", "average", "random", "none")),
]
AT_THE_OUTPUT = {"positions": "output", "layer_norm": "token", "characters": True}
DIMS = {"sentiment": (6,), "pos": (16,), "ner": (7, 7, 7)}


@pytest.mark.parametrize(("task", "inputs"), [*product(DIMS, INPUTS), ("sentiment", AT_THE_OUTPUT)])
def test_answers_are_those_of_the_network(task, inputs, model_dir):
    kind, static = FrozenClassifier if task == "sentiment" else FrozenTagger, inputs.get("static")
    settings = InputSettings(**{name: inputs[name] for name in inputs.keys() - {"static"}})
    config = TaskRunConfig(task=task, hidden_dims=DIMS[task], inputs=settings)
    config = config.resolved(with_static=static is not None)
    bilm, task = TaskBiLM.open(config.inputs, str(model_dir)), find_task(task)
    network = build_network(task, config, LABELS, bilm, static)
    generator = torch.Generator().manual_seed(0)
    network.reset_parameters(generator)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "mix" in name or "gamma" in name or "bias" in name:
                parameter.normal_(1.0, 0.5, generator=generator)
    frozen = kind(config, LABELS, bilm, static, network.arrays())
    examples = [task.from_text(text, WhitespaceTokenizer()) for text in TEXTS]
    held = Examples(task, examples, bilm.layers_of(kept=False))
    expected, answers = predict(network, held), predict(frozen, held)
    for (answer, probs), (other, other_probs) in zip(answers, expected, strict=True):
        assert answer == other
        assert probs() == pytest.approx(other_probs(), abs=1e-5)


@pytest.fixture
def korean():
    pytest.importorskip("kiwipiepy")
    return NormalizingTokenizer(build_tokenizer("korean"), "plain-1")


def test_entities_are_marked_in_the_text_itself(korean):
    example = NerTask().from_text("김민수는\u200b  “서울”에 갔다.", korean)
    tags = ["O"] * len(example.tokens)
    tags[0], tags[3] = "U-PER", "U-LOC"
    assert example.tokens[3] == "서울"
    assert NerTask().show(example, tags) == "[김민수 PER]는\u200b  “[서울 LOC]”에 갔다."
    first, second = NerTask().as_json(example, tags, [0.5, 0.25])["entities"]
    assert (first["text"], first["probability"]) == ("김민수", 0.5)
    assert second == {
        "type": "LOC", "text": "서울", "start": 8, "end": 10, "token_start": 3, "token_end": 4,
        "probability": 0.25,
    }  # fmt: skip


def test_tags_stand_behind_the_words_as_written_or_as_read_where_they_share_characters(korean):
    example = PosTask().from_text("서울에  갔다…", korean)
    assert example.tokens == ("서울", "에", "가", "었", "다", "...")
    assert PosTask().show(example, list("ABCDEF")) == "서울/A 에/B 가/C 었/D 다/E …/F"
    answer = PosTask().as_json(example, list("ABCDEF"), [0.5] * 6)
    assert answer["text"] == "서울에  갔다…"
    assert answer["tokens"][3] == {
        "text": "었", "start": 5, "end": 6, "tag": "D", "probability": 0.5,
    }  # fmt: skip
    assert answer["tokens"][5]["end"] - answer["tokens"][5]["start"] == 1


@pytest.mark.parametrize(
    ("text", "tokens", "tags", "shown"),
    [
        ("The dog  *bit* him.", "The dog bit him .", "O O B-V B-A1 O",
         "The dog  [V bit] [A1 him]."),
        ("The U.S. *attacked* it.", "The U.S. attacked it .", "O O B-V B-A1 O",
         "The U.S. [V attacked] [A1 it]."),
        ("I *could*n't go.", "I could n't go .", "O B-V B-A1 O O", "I [V could][A1 n't] go."),
        ("*Go* at 5 p.m. now", "Go at 5 p.m. now", "B-V B-A1 O O O", "[V Go] [A1 at] 5 p.m. now"),
        ("It *took off* late", "It took off late", "O B-V I-V B-A1", "It [V took off] [A1 late]"),
    ],
)  # fmt: skip
def test_a_marked_text_has_the_words_of_the_text_without_the_marks(text, tokens, tags, shown):
    task, tags = SrlTask(), tags.split()
    example = task.from_text(text, build_tokenizer("simple:en"))
    assert example.tokens == tuple(tokens.split())
    assert task.show(example, tags) == shown
    answer = task.as_json(example, tags)
    assert (answer["text"], answer["predicate"]) == (text, tags.index("B-V"))
    role, start = answer["roles"][0], text.index("*") + 1
    assert (role["start"], role["text"]) == (start, text[start : text.rindex("*")])
    assert "probability" not in role


def test_words_that_are_not_in_the_text_have_no_place():
    written = WrittenWords(["a", "x", "b"], f"a {'y' * 200} b")
    assert written.as_json()[0] == {"text": "a", "start": None, "end": None}
    assert written.span(0, 2)["text"] == "a x"
    assert written.each() == ["a", "x", "b"]
    assert written.marked([(1, 3, "<", ">")]) == "a <x b>"
    morphemes = WrittenWords(["의사", "이", "다"], "의사다")  # 이 is of nothing that is written
    assert morphemes.marked([(1, 2, "[", "]1")]) == "의사[]1다"
