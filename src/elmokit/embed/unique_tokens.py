"""Each distinct word once: the token layer does not know the context, so its answer is shared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Integer
from torch import Tensor

from elmokit.embed.precision import Network
from elmokit.nn.char_cnn import PADDING_ID
from elmokit.text.char_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD

ROW_BLOCK = 16
"""Words go through the character CNN in multiples of this; see ``engine.ROW_BLOCK``."""
MAX_CHARACTERS_PER_CHUNK = 4096
"""Character positions in one call of the character CNN: bounds its memory."""


@dataclass(frozen=True)
class DistinctTokens:
    """The distinct words of some sentences, and the sentences as indices into them."""

    ids: Integer[np.ndarray, "U ..."]
    """Character ids (U, C), or word ids (U,); rows 0 and 1 are ``<S>`` and ``</S>``."""
    sentences: list[Integer[np.ndarray, " _"]]
    """For each sentence the rows of ``<S>``, its words, ``</S>``."""


def find_distinct_tokens(
    sentences: Sequence[Sequence[str]], encode: Callable[[Sequence[str]], np.ndarray]
) -> DistinctTokens:
    """Number the distinct words of ``sentences``, and encode each once.

    Args:
        sentences: Lists of words, without boundaries.
        encode: Words to rows of ids.
    """
    rows: dict[str, int] = {SENTENCE_BEGIN_WORD: 0, SENTENCE_END_WORD: 1}
    indices = []
    for sentence in sentences:
        index = [rows.setdefault(word, len(rows)) for word in sentence]
        indices.append(np.array([0, *index, 1], dtype=np.int64))
    return DistinctTokens(encode(list(rows)), indices)


@torch.inference_mode()
def encode_distinct_tokens(
    network: Network, ids: Integer[np.ndarray, "U ..."]
) -> Float[Tensor, "U D"]:
    """Run the token layer over distinct tokens, in chunks of bounded memory.

    Words of like length go together, so that the CNN need not look at padding. A word's vector does
    not depend on the others, to the last bit: every product is at least `ROW_BLOCK` rows high.
    """
    if ids.ndim == 1:
        return network.token_encoder(torch.from_numpy(ids).to(network.device)).float()
    lengths = (ids != PADDING_ID).sum(axis=1)
    order = np.argsort(lengths, kind="stable")
    widest = network.config.char_vocab.max_characters
    vectors = torch.empty(
        len(ids), network.config.lstm.projection_dim, device=network.device
    )  # (U, D)
    start = 0
    with network.arithmetic():
        while start < len(order):
            columns = min(widest, int(lengths[order[start]]) + 8)
            size = max(1, MAX_CHARACTERS_PER_CHUNK // columns // ROW_BLOCK) * ROW_BLOCK
            rows = order[start : start + size]
            padded = np.resize(rows, -(-len(rows) // ROW_BLOCK) * ROW_BLOCK)
            char_ids = torch.from_numpy(ids[padded].astype(np.int64)).to(network.device)
            encoded = network.token_encoder(char_ids)[: len(rows)]
            vectors[torch.from_numpy(rows).to(network.device)] = encoded.float()
            start += len(rows)
    return vectors
