"""Weights of the original software to a model directory, which is then loaded.

python examples/load_original_weights.py options.json weights.hdf5 MODEL
"""

import sys

import elmokit


def main(options: str, weights: str, model_dir: str) -> None:
    model = elmokit.read_bilm_tf(options, weights)
    model.save(model_dir)
    print(f"{model.num_parameters():,} parameters, hash {model.model_hash()[:12]}")
    again = elmokit.load_model(model_dir)
    assert again.model_hash() == model.model_hash()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
