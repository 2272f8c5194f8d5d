"""Taggers in training: what the mixture of layers learns at the default rate."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.token_inputs import BatchMaker, TokenBatch, TokenInputs
from elmokit.tasks.networks.tagger import Tagger
from elmokit.tasks.runs.examples import Examples
from elmokit.tasks.runs.training import TaskTrainConfig, TaskTraining
from elmokit.tasks.tagging import PosTask
from elmokit.text.char_vocab import CharVocab

from ...builders.task_models import full_inputs

NUM_LAYERS, DIM, WORDS = 3, 8, 6
TAGS = ["A", "B", "C", "D"]
INFORMATIVE = 1
"""The layer that tells the tags apart; the others are noise."""


@pytest.fixture
def held():
    """Sentences of words with random tags, and layers of which one follows the tags."""
    random = np.random.default_rng(0)
    centers = random.normal(size=(len(TAGS), DIM))
    examples, layers = [], {}
    for number in range(100):
        tags = random.integers(len(TAGS), size=WORDS)
        tokens = tuple(f"w{number}.{index}" for index in range(WORDS))
        values = random.normal(size=(WORDS, NUM_LAYERS, DIM))
        values[:, INFORMATIVE] = centers[tags] + 0.3 * values[:, INFORMATIVE]
        names = tuple(TAGS[tag] for tag in tags)
        examples.append(TaggedSentence(tokens=tokens, tags=names))
        layers[tokens] = values.astype(np.float16)
    return Examples(PosTask(), examples, lambda wanted: [layers[words] for words in wanted])


def learned_shares(held, *, layer_l2):
    """Train with the defaults; return the share of each layer after 300 updates."""
    task = PosTask()
    settings = InputSettings(characters=False, layer_l2=layer_l2).resolved(
        task.paper_inputs, with_static=False
    )
    inputs = TokenInputs(
        settings, num_layers=NUM_LAYERS, layers_dim=DIM, max_characters=50, static=None
    )
    network = Tagger(inputs, TAGS, (8,), dropout=task.default_dropout)
    network.reset_parameters(torch.Generator().manual_seed(0))
    config = TaskTrainConfig(epochs=12, patience=12, batch_size=4)
    list(TaskTraining(network, BatchMaker(settings, CharVocab(), None), held, held, config).run())
    return torch.softmax(inputs.mixes.scalar_mixes[0].mix_weights.detach(), dim=0).tolist()


def test_the_mixture_finds_the_layer_that_tells_the_tags_apart(held):
    shares = learned_shares(held, layer_l2=PosTask.paper_inputs.layer_l2)
    assert shares[INFORMATIVE] > 0.37
    assert max(shares[0], shares[2]) < 0.32


def test_gold_comes_back_out_and_unknown_tags_are_the_first(monkeypatch):
    mask = torch.tensor([[True, True, True], [False, False, False], [True, False, False]])
    settings = full_inputs(embeddings="none")
    inputs = TokenInputs(settings, num_layers=0, layers_dim=0, max_characters=9, static=None)
    tagger = Tagger(inputs, ["O", "B-X", "I-X"], (4,), dropout=0.5)
    examples = [SimpleNamespace(tags=tags) for tags in (("B-X", "I-X", "B-NEW"), (), ("I-X",))]
    ids = torch.tensor([[1, 2, 0], [0, 0, 0], [2, 0, 0]])
    scores = 50.0 * torch.nn.functional.one_hot(ids, 3)
    monkeypatch.setattr(tagger, "logits", lambda batch, examples: scores)
    batch = TokenBatch(mask, None, None, None, None)
    assert float(tagger.loss([batch], examples)) < 1e-6
    assert tagger.predict([batch], examples) == [["B-X", "I-X", "O"], [], ["I-X"]]
