"""A trained biLM for another vocabulary: the softmax rows of shared words are kept."""

import logging
from typing import Any

import numpy as np
import torch

from elmokit.bilm.softmax import FullSoftmax, SoftmaxConfig
from elmokit.errors import ConfigError, as_input_error
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.model_dir import PretrainedBiLM

log = logging.getLogger(__name__)


def check_vocab(base: PretrainedBiLM, vocab: WordVocab | None) -> None:
    """Check that a model can be given a vocabulary; None: one that is yet to be counted.

    Raises:
        ConfigError: if it is a word-input model, and the vocabulary not its own.
    """
    if base.config.char_cnn is None and base.word_vocab != vocab:
        raise ConfigError(
            "A word-input model reads its vocabulary too, so fine-tuning cannot change it: leave "
            "out --vocab."
        )


def with_vocab(
    base: PretrainedBiLM, vocab: WordVocab, *, softmax: SoftmaxConfig, seed: int = 0
) -> tuple[PretrainedBiLM, bool]:
    """Return a copy of ``base`` that predicts the words of ``vocab``.

    A new word starts with the row of ``<UNK>`` and a lower bias, such that all new words and
    ``<UNK>`` together keep the probability that ``<UNK>`` had. The copy is thus a language model
    over the new vocabulary from the start, and its perplexity before training is meaningful.
    ``softmax`` is built, with ``seed``, if ``base`` has no softmax whose rows can be kept.

    Returns:
        The copy, and whether its softmax is untrained.

    Raises:
        ConfigError: if a word-input model would need another input vocabulary.
    """
    check_vocab(base, vocab)
    is_same = base.word_vocab == vocab
    kept = base.softmax if isinstance(base.softmax, FullSoftmax) or is_same else None
    config = softmax if kept is None else base.softmax_config or softmax
    with as_input_error():  # settings meet the vocabulary's size here
        model = PretrainedBiLM(
            base.config,
            word_vocab=vocab,
            softmax_config=config,
            tokenizer=base.tokenizer,
            warm_text=base.warm_text,
            training=base.training_metadata,
        )
    state = base.state_dict().items()
    bilm_state = {name: tensor for name, tensor in state if not name.startswith("softmax.")}
    model.load_state_dict(bilm_state, strict=False)
    assert model.softmax is not None
    if kept is None or base.word_vocab is None:
        log.info("the model has no softmax whose rows can be kept: a new one is trained first")
        model.softmax.reset_parameters(torch.Generator().manual_seed(seed))
        return model, True
    if is_same:
        model.softmax.load_state_dict(kept.state_dict())
    else:
        _copy_rows(kept, base.word_vocab, model.softmax, vocab)
    return model, False


def _copy_rows(old: Any, old_vocab: WordVocab, new: Any, new_vocab: WordVocab) -> None:
    """Fill the new output layer from the old one's rows; see `with_vocab`."""
    old_ids = old_vocab.encode(new_vocab.words)  # <UNK>'s id for new words
    shares_unknown = torch.from_numpy(old_ids == old_vocab.unknown_id)
    rank = torch.arange(1, len(new_vocab) + 1, dtype=torch.float64)
    zipf = torch.where(shares_unknown, 1 / rank, torch.zeros_like(rank))
    unknown = new_vocab.unknown_id - 1
    zipf[unknown] = 0
    zipf[unknown] = zipf.sum().clamp(min=1e-9)  # <UNK> keeps half, or all if no word is new
    log_share = torch.where(shares_unknown, (zipf / zipf.sum()).log(), torch.zeros_like(rank))
    index = torch.from_numpy(np.asarray(old_ids)) - 1
    with torch.no_grad():
        new.weight.copy_(old.weight[index])
        new.bias.copy_(old.bias[index] + log_share.to(old.bias.dtype))
