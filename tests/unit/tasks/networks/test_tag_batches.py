from types import SimpleNamespace

import torch

from elmokit.tasks.networks.tag_batches import cut_tags, gold_ids

MASK = torch.tensor([[True, True, True], [False, False, False], [True, False, False]])
TAGS = ["O", "B-X", "I-X"]


def test_gold_comes_back_out_and_unknown_tags_are_the_first():
    examples = [SimpleNamespace(tags=tags) for tags in (("B-X", "I-X", "B-NEW"), (), ("I-X",))]
    ids = gold_ids(examples, {tag: number for number, tag in enumerate(TAGS)}, MASK)
    assert ids.tolist() == [[1, 2, 0], [0, 0, 0], [2, 0, 0]]
    assert cut_tags(ids, TAGS, MASK) == [["B-X", "I-X", "O"], [], ["I-X"]]
