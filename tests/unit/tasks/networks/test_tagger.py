from types import SimpleNamespace

import torch

from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.networks.tagger import Tagger

from ....builders.task_models import full_inputs

MASK = torch.tensor([[True, True, True], [False, False, False], [True, False, False]])
TAGS = ["O", "B-X", "I-X"]


def test_gold_comes_back_out_and_unknown_tags_are_the_first(monkeypatch):
    settings = full_inputs(embeddings="none")
    inputs = TokenInputs(settings, num_layers=0, layers_dim=0, max_characters=9, static=None)
    tagger = Tagger(inputs, TAGS, (4,))
    examples = [SimpleNamespace(tags=tags) for tags in (("B-X", "I-X", "B-NEW"), (), ("I-X",))]
    ids = tagger._gold_ids(examples, MASK)
    assert ids.tolist() == [[1, 2, 0], [0, 0, 0], [2, 0, 0]]
    scores = torch.nn.functional.one_hot(ids, len(TAGS)).float()
    monkeypatch.setattr(tagger, "logits", lambda batch, examples: scores)
    batch = TokenBatch(MASK, None, None, None, None)
    assert tagger.predict([batch], examples) == [["B-X", "I-X", "O"], [], ["I-X"]]
