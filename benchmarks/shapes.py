"""The models that are measured: random weights of the released shapes, one set for all programs."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from elmokit import BiLMConfig, CharVocabConfig, PretrainedBiLM, write_bilm_tf
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
