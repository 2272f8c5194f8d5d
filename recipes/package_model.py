"""Make a trained model one that ships in the package: int8 weights, scored again, with its card.

    python recipes/package_model.py models/en en --license "CC BY-SA 3.0" --valid wiki/dev.txt.xz \
        --text "English Wikipedia (2015, CC BY-SA 3.0), 62 novels (public domain)" \
        --trained "100 minutes on one thread of a two-core machine"

Writes src/elmokit/data/models/NAME. The perplexity on its card is that of the rounded weights. Task
scores come to the card afterwards, from the published experiments (recipes/publish_cards.py).
"""

import argparse
import dataclasses
import tempfile
from pathlib import Path

from elmokit.cli.error_messages import exit_on_user_error
from elmokit.corpus.readers import read_sentences
from elmokit.errors import InputError
from elmokit.evaluation.perplexity import perplexity
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.weights.locate import PACKAGED_MODELS
from elmokit.weights.model_dir import PretrainedBiLM, load_model

MAX_BYTES = 20_000_000
"""Of all files of a model in the package."""
LIMITS = (
    "small, and trained on two processor cores, not for weeks on several GPUs: expect gains over "
    "static vectors, not the figures of large models; knows what its text knows, and shares its "
    "biases"
)


def package(model: PretrainedBiLM, options: argparse.Namespace) -> Path:
    """Round, score and write a model; return its directory."""
    model.round_to("int8")
    tokenizer = build_tokenizer(model.tokenizer)
    form = model.config.char_vocab.normalization
    sentences = read_sentences(options.valid, tokenizer, normalization=form)
    report = perplexity(model, sentences)
    model.training_metadata = {
        "language": options.language or options.name,
        "license": options.license,
        "text": options.text,
        "trained": options.trained,
        "held_out": options.held_out or ", ".join(path.name for path in options.valid),
        "perplexity": dataclasses.asdict(report),
        "limits": LIMITS,
    }
    target = PACKAGED_MODELS / options.name
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:  # the packaged one stays if this one is too large
        model.save(Path(folder) / "model", dtype="int8")
        size = num_bytes(Path(folder) / "model")
    if size > MAX_BYTES:
        raise InputError(
            f"The model has {size:,} bytes, more than {MAX_BYTES:,}: too large to ship."
        )
    model.save(target, dtype="int8")
    return target


def num_bytes(directory: Path) -> int:
    """Return the size of the files in a directory."""
    return sum(path.stat().st_size for path in directory.iterdir())


def main() -> None:
    """Parse, write, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="model directory")
    parser.add_argument("name", help="what `--model` calls it, a language code")
    parser.add_argument("--language", help="default: the name")
    parser.add_argument("--trained", required=True, help="how, in words: stages, time, machine")
    parser.add_argument("--license", required=True, help="of the text, hence of the weights")
    parser.add_argument("--text", required=True, help="what it was trained on")
    parser.add_argument("--valid", type=Path, nargs="+", required=True, help="held-out text")
    parser.add_argument(
        "--held-out", help="the held-out text in words, for the card; default: the names of --valid"
    )
    options = parser.parse_args()
    target = package(load_model(options.model), options)
    card = (target / "README.md").read_text(encoding="utf-8")
    print(f"{target}: {num_bytes(target):,} bytes\n{card}")


if __name__ == "__main__":
    with exit_on_user_error():
        main()
