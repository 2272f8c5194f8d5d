"""Make a trained model wider without changing what it computes, to go on training it.

    python recipes/widen_model.py en en-wide --cell 768 --projection 192

Every new cell and every new dimension begins with the weights of an untrained model, and nothing
that was there before reads it yet: perplexity is what it was, and gradients reach all of the new
weights after one update (the idea of Net2Net, Chen et al. 2016, with silent instead of copied
units). How training goes on: recipes/finetune/english-wider.toml.
"""

import argparse
import dataclasses
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor

from elmokit.cli.error_messages import exit_on_user_error
from elmokit.errors import InputError
from elmokit.text.normalization import DEFAULT_NORMALIZATION, Normalization
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import PretrainedBiLM, load_model

NUM_GATES = 4
GATED = ("input_weight", "recurrent_weight", "bias")
"""Parameters of an LSTM layer whose rows are the cells of one gate after another."""


def widened(
    model: PretrainedBiLM,
    *,
    cell_dim: int,
    projection_dim: int,
    normalization: Normalization,
    num_samples: int,
) -> PretrainedBiLM:
    """Return a wider copy of a model that computes the same.

    Raises:
        InputError: if the model is narrowed, or has no sampled softmax.
    """
    config = model.config
    old = config.lstm
    if cell_dim < old.cell_dim or projection_dim < old.projection_dim:
        raise InputError(
            f"The model has {old.cell_dim} cells and {old.projection_dim} dimensions, and can only "
            f"become wider: got {cell_dim} and {projection_dim}."
        )
    if model.softmax_config is None or model.softmax_config.kind != "sampled":
        raise InputError("The model has no sampled softmax, so it cannot be trained further.")
    name = model.tokenizer.name
    tokenizer = TokenizerConfig(name=name, version=build_tokenizer(name).version)
    wide = PretrainedBiLM(
        dataclasses.replace(
            config,
            char_vocab=dataclasses.replace(config.char_vocab, normalization=normalization),
            lstm=dataclasses.replace(old, cell_dim=cell_dim, projection_dim=projection_dim),
        ),
        word_vocab=model.word_vocab,
        softmax_config=dataclasses.replace(model.softmax_config, num_samples=num_samples),
        tokenizer=tokenizer,
        warm_text=model.warm_text,
        training=model.training_metadata,
    )
    wide.load_state_dict(
        {
            name: widened_parameter(name, model.state_dict()[name], fresh)
            for name, fresh in wide.state_dict().items()
        }
    )
    return wide


def widened_parameter(name: str, old: Tensor, fresh: Tensor) -> Tensor:
    """Return ``fresh`` with ``old`` in its corner; old rows do not read new columns."""
    if "_layers." in name and name.rpartition(".")[2] in GATED:
        gates = zip(old.chunk(NUM_GATES), fresh.chunk(NUM_GATES), strict=True)
        return torch.cat([corner(*pair) for pair in gates])
    return corner(old, fresh)


def corner(old: Tensor, fresh: Tensor) -> Tensor:
    """Return ``fresh`` whose first rows are those of ``old``, and zero beyond them."""
    result = fresh.clone()
    result[: len(old)] = 0
    result[tuple(slice(0, size) for size in old.shape)] = old
    return result


def main() -> None:
    """Parse, widen, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="model directory, or the name of a packaged model")
    parser.add_argument("output", type=Path, help="directory of the wider model")
    parser.add_argument("--cell", type=int, required=True, help="cells of every LSTM layer")
    parser.add_argument("--projection", type=int, required=True, help="dimensions per direction")
    parser.add_argument(
        "--normalization",
        choices=get_args(Normalization),
        default=DEFAULT_NORMALIZATION,
        help=f"of text; default: {DEFAULT_NORMALIZATION}",
    )
    parser.add_argument("--samples", type=int, default=4096, help="negatives; default: 4096")
    options = parser.parse_args()
    model = load_model(find_model(options.model))
    widened(
        model,
        cell_dim=options.cell,
        projection_dim=options.projection,
        normalization=options.normalization,
        num_samples=options.samples,
    ).save(options.output)


if __name__ == "__main__":
    with exit_on_user_error():
        main()
