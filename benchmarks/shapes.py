"""The models that are measured: random weights of the released shapes, one set for all programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from elmokit import BiLMConfig, CharVocabConfig, PretrainedBiLM, write_bilm_tf
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.training.pretraining.presets import pretrain_config

SEED = 0
CACHE_DIR = Path.home() / ".cache" / "elmokit-bench"
"""Where weights and environments are kept between runs."""
SHAPES = ("tiny", "small", "original")
"""Presets whose network is measured; small and original are the released 2x1024_128 and 2x4096_512.
"""


@cache
def shape_config(shape: str) -> BiLMConfig:
    """Return the network of a preset with the original's text processing, which peers share."""
    return replace(
        pretrain_config(shape).model,
        char_vocab=CharVocabConfig(normalization="none", truncation="byte"),
    )


def model_folder(shape: str, cache_dir: Path) -> Path:
    """Return a folder with ``options.json``, ``weights.hdf5`` and our ``model``; made if absent."""
    folder = cache_dir / "weights" / f"{shape}-seed{SEED}"
    finished = folder / "finished.json"
    if not finished.exists():
        model = PretrainedBiLM(shape_config(shape))
        model.reset_parameters(torch.Generator().manual_seed(SEED))
        folder.mkdir(parents=True, exist_ok=True)
        write_bilm_tf(model, folder / "options.json", folder / "weights.hdf5")
        model.save(folder / "model")
        finished.write_text(json.dumps({"shape": shape, "seed": SEED}), encoding="utf-8")
    return folder


def lstm_flop(config: LSTMConfig) -> int:
    """Operations of both LSTM stacks' products for one token."""
    cell, projection = config.cell_dim, config.projection_dim
    one_layer = 2 * (2 * projection * 4 * cell + cell * projection)
    return 2 * config.num_layers * one_layer


def cnn_flop(config: CharCNNConfig, *, num_bytes: int, output_dim: int, max_characters: int) -> int:
    """Operations of the token encoder's products for one word.

    Windows that see nothing but padding are not counted: they need not be computed.
    """
    length = min(num_bytes, max_characters - 2) + 2
    windows = {width: min(length, max_characters - width + 1) for width, _ in config.filters}
    convolutions = sum(
        2 * windows[width] * width * config.embedding_dim * count for width, count in config.filters
    )
    wide = config.num_filters
    return convolutions + config.num_highway * 2 * 2 * wide * wide + 2 * wide * output_dim


def needed_flop(config: BiLMConfig, calls: Iterable[Sequence[Sequence[str]]]) -> int:
    """Operations that embedding needs: LSTMs for every token, the CNN once a distinct word a call.

    Args:
        config: The network.
        calls: The sentences of each call; two boundaries a sentence are counted in.
    """
    assert config.char_cnn is not None
    total = 0
    for sentences in calls:
        num_tokens = sum(len(sentence) + 2 for sentence in sentences)
        total += num_tokens * lstm_flop(config.lstm)
        for word in {word for sentence in sentences for word in sentence} | {"<", ">"}:
            total += cnn_flop(
                config.char_cnn,
                num_bytes=len(word.encode("utf-8", "ignore")),
                output_dim=config.lstm.projection_dim,
                max_characters=config.char_vocab.max_characters,
            )
    return total
