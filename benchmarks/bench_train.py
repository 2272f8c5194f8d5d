"""Training beside what a user would run instead: tokens a second, ratios.

    python benchmarks/bench_train.py --preset tiny
    python benchmarks/bench_train.py --text wiki.txt > results.json

Ours is `elmokit.pretrain` whole. The plain stack is `nn.LSTM(proj_size=…)` under PyTorch's autograd
with dense gradients, its CNN once a distinct word of the batch; its windows are made before the
clock starts. All begin with the same weights, windows and candidates, and their first losses,
without dropout, are compared. Every run is a process of its own, in turns; one update comes before
the clock. A token is one word that both directions predict.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from common import (
    Sentence,
    alternate,
    compare_speeds,
    comparison_parser,
    print_result,
    read_text,
    text_metadata,
)
from peers.programs import OURS, TRAINERS, select

from elmokit import WordVocab
from elmokit.corpus.shards import write_shards
from elmokit.training.pretraining.presets import pretrain_config

UNROLL_STEPS = 20


class Plan(NamedTuple):
    """What one shape is measured with."""

    preset: str
    """Of ours: network and optimizer."""
    batch_size: int
    num_samples: int
    vocab: int
    steps: int
    """Updates of a turn."""


PLANS = {
    "small": Plan("small", 128, 8192, 100_000, 3),
    "original": Plan("original", 128, 8192, 100_000, 2),
    "tiny": Plan("tiny", 64, 2048, 30_000, 5),
    "trial": Plan("tiny", 4, 64, 500, 1),
}
PRESETS = {"full": ("small", "original", "tiny"), "tiny": ("trial",)}


def write_text(folder: Path, text: Sequence[Sentence], num_words: int) -> None:
    """Write shards and a vocabulary, which is filled up with made-up words if it needs more."""
    made_by = {"tokenizer": {"name": "whitespace", "version": ""}, "normalization": "NFC"}
    write_shards(text, folder / "shards", metadata=made_by)
    counts = Counter(word for sentence in text for word in sentence)
    specials = ["<S>", "</S>", "<UNK>"]
    known = [word for word, _ in counts.most_common() if word not in specials]
    filled = [*specials, *known, *(f"\u2063{index}" for index in range(num_words))]
    WordVocab(filled[:num_words]).write(folder / "vocab.txt")


def measure_shape(
    options: argparse.Namespace, text: Sequence[Sentence], plan: Plan, folder: Path
) -> dict[str, Any]:
    """Run all programs on one shape in turns."""
    overrides = [
        f"train.batch_size={plan.batch_size}", f"train.unroll_steps={UNROLL_STEPS}",
        "softmax.kind=sampled", f"softmax.num_samples={plan.num_samples}",
    ]  # fmt: skip
    write_text(folder, text, plan.vocab)
    dropout = pretrain_config(plan.preset, overrides=overrides).model.dropout
    programs = select(TRAINERS, options.only)

    def ask(name: str, dropout: float, steps: int) -> dict[str, Any]:
        return programs[name].ask(
            "train", threads=options.threads, folder=str(folder), preset=plan.preset,
            overrides=[*overrides, f"model.dropout={dropout}"], steps=steps,
        )  # fmt: skip

    first = {name: ask(name, 0.0, 1) for name in programs}
    seconds = alternate(
        programs, lambda name: ask(name, dropout, plan.steps)["seconds"], repeats=options.repeats
    )
    tokens = plan.batch_size * UNROLL_STEPS * plan.steps
    return {
        "settings": {"dropout": dropout, **plan._asdict()},
        "first_losses": {name: answer["loss"] for name, answer in first.items()},
        "versions": {name: answer["versions"] for name, answer in first.items()},
        **compare_speeds(seconds, tokens=tokens, ours=list(OURS)),
    }


def main() -> None:
    parser = comparison_parser(__doc__)
    parser.add_argument("--preset", choices=PRESETS, default="full")
    parser.add_argument("--shapes", nargs="+", choices=PLANS)
    parser.set_defaults(repeats=5)
    options = parser.parse_args()
    text, results = read_text(options.text), {}
    for shape in options.shapes or PRESETS[options.preset]:
        with tempfile.TemporaryDirectory() as folder:
            results[shape] = measure_shape(options, text, PLANS[shape], Path(folder))
        print(f"{shape}: {results[shape]['ratios']}", file=sys.stderr, flush=True)
    sizes = {"text": text_metadata(text, options.text), "threads": options.threads}
    print_result("train", sizes, results)


if __name__ == "__main__":
    main()
