"""Taggers in training: what the mixture of layers learns at the default rate."""

from types import SimpleNamespace

import torch

from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.networks.tagger import Tagger

from ...builders.task_models import full_inputs

NUM_LAYERS, DIM, WORDS = 3, 8, 6
"""The layer that tells the tags apart; the others are noise."""


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
