"""Tags of words in batches: gold tags as ids, predicted ids as tags."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def gold_ids(
    examples: Sequence[Any], ids: Mapping[str, int], mask: Bool[Tensor, "B W"]
) -> Int[Tensor, "B W"]:
    """Return the ids of the examples' ``tags``, 0 at padded positions and for unknown tags."""
    gold = torch.zeros(mask.shape, dtype=torch.int64)
    for row, example in enumerate(examples):
        known = [ids.get(tag, 0) for tag in example.tags]
        gold[row, : len(known)] = torch.tensor(known, dtype=torch.int64)
    return gold


def cut_tags(
    best: Int[Tensor, "B W"], tags: list[str], mask: Bool[Tensor, "B W"]
) -> list[list[str]]:
    """Return the tags of each row's real positions."""
    lengths = mask.sum(dim=1).tolist()
    return [
        [tags[tag] for tag in row[:length]]
        for row, length in zip(best.tolist(), lengths, strict=True)
    ]
