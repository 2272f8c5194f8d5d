"""Training beside what a user would run instead: tokens a second, ratios.

    python benchmarks/bench_embed.py --make-environments
    python benchmarks/bench_train.py --preset tiny
    python benchmarks/bench_train.py --text wiki.txt > results.json

Ours is `elmokit.pretrain` whole, with its data preparation; it stops between two updates while
another program works. The plain stack is `nn.LSTM(proj_size=…)` under PyTorch's autograd with
dense gradients, its CNN on every token (of both directions' inputs, as bilm-tf does) or once a
distinct word of the batch; its windows are made before the clock starts. bilm-tf is the training
graph that simple_elmo ships, on TensorFlow 2. All train on the same windows; ours and the plain
stack begin with the same weights and candidates, and their first losses are compared. One update at
least comes before the clock. A token is one word that both directions predict.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    Sentence,
    alternate,
    new_parser,
    print_result,
    ratios,
    read_text,
    speed_table,
    text_metadata,
    throughputs,
)  # fmt: skip
from peers import TRAINERS, Program, Worker, start_all

from elmokit import CharVocab, WordVocab
from elmokit.corpus.packing import WindowBatch
from elmokit.corpus.shards import write_shards
from elmokit.corpus.stream import WindowStream
from elmokit.text.char_vocab import CHAR_PADDING
from elmokit.training.pretraining.presets import pretrain_config

NUM_WINDOWS = 4
"""Written out for bilm-tf."""
OURS_FIRST = "elmokit fp32"
TABLE_PEERS = ("plain nn.LSTM stack", "plain, distinct words", "bilm-tf (in simple_elmo)")


@dataclass(frozen=True)
class Plan:
    """What one shape is measured with."""

    preset: str
    """Of ours: network and optimizer."""
    batch_size: int
    num_samples: int
    vocab: int
    steps: int
    """Updates of a turn."""

    @property
    def overrides(self) -> list[str]:
        """Settings over the preset, dropout aside."""
        return [
            f"train.batch_size={self.batch_size}", "train.unroll_steps=20", "softmax.kind=sampled",
            f"softmax.num_samples={self.num_samples}",
        ]  # fmt: skip


PLANS = {
    "small": Plan("small", 128, 8192, 100_000, 3),
    "original": Plan("original", 128, 8192, 100_000, 2),
    "tiny": Plan("tiny", 64, 2048, 30_000, 5),
    "trial": Plan("tiny", 4, 64, 500, 1),
}
PRESETS = {"full": ("small", "original", "tiny"), "tiny": ("trial",)}


def write_task(folder: Path, text: Sequence[Sentence], plan: Plan, config: Any) -> None:
    """Write what all programs read: shards, vocabulary, and for bilm-tf windows and options.

    A text with fewer distinct words than the vocabulary is to have is filled up with made-up ones.
    """
    made_by = {"tokenizer": {"name": "whitespace", "version": ""}, "normalization": "NFC"}
    shards = write_shards(text, folder / "shards", metadata=made_by)
    counts = Counter(word for sentence in text for word in sentence)
    specials = ["<S>", "</S>", "<UNK>"]
    known = [word for word, _ in counts.most_common() if word not in specials]
    filled = [*known, *(f"\u2063{index}" for index in range(plan.vocab))]
    vocab = WordVocab([*specials, *filled][: plan.vocab])
    vocab.write(folder / "vocab.txt")
    stream = WindowStream(
        shards, vocab, CharVocab(config.model.char_vocab),
        batch_size=plan.batch_size, num_steps=config.train.unroll_steps, seed=config.train.seed,
    )  # fmt: skip
    arrays: Any = bilm_tf_windows([batch for batch, _ in islice(stream, NUM_WINDOWS)])
    np.savez(folder / "windows.npz", **arrays)
    options = json.dumps(bilm_tf_options(plan, config))
    (folder / "bilm_tf_options.json").write_text(options, encoding="utf-8")


def bilm_tf_windows(windows: Sequence[WindowBatch]) -> dict[str, np.ndarray]:
    """Return windows (windows, B, T, …) with the original's ids, which begin at 0."""
    arrays = {}
    for direction in ("forward", "backward"):
        inputs = [w.char_ids[getattr(w, f"{direction}_inputs")].astype("i4") for w in windows]
        arrays[f"{direction}_chars"] = np.stack(inputs) - 1
        targets = [getattr(window, f"{direction}_targets") for window in windows]
        arrays[f"{direction}_targets"] = np.stack(targets) - 1
    return arrays


def bilm_tf_options(plan: Plan, config: Any) -> dict[str, Any]:
    """Return bilm-tf's options for the same network."""
    char_cnn, lstm = config.model.char_cnn, config.model.lstm
    return {
        "bidirectional": True,
        "char_cnn": {
            "activation": char_cnn.activation, "embedding": {"dim": char_cnn.embedding_dim},
            "filters": char_cnn.filters, "n_highway": char_cnn.num_highway,
            "max_characters_per_token": config.model.char_vocab.max_characters,
            "n_characters": CHAR_PADDING + 1,
        },
        "lstm": {
            "cell_clip": lstm.cell_clip, "proj_clip": lstm.projection_clip, "dim": lstm.cell_dim,
            "n_layers": lstm.num_layers, "projection_dim": lstm.projection_dim,
            "use_skip_connections": lstm.skip_connections,
        },
        "dropout": config.model.dropout, "all_clip_norm_val": 10.0, "learning_rate": 0.2,
        "batch_size": plan.batch_size, "unroll_steps": config.train.unroll_steps,
        "n_tokens_vocab": plan.vocab, "n_negative_samples_batch": plan.num_samples,
    }  # fmt: skip


def measure_shape(
    options: argparse.Namespace, text: Sequence[Sentence], plan: Plan, folder: Path
) -> dict[str, Any]:
    """Run all programs on one shape in turns."""
    config = pretrain_config(plan.preset, overrides=plan.overrides)
    write_task(folder, text, plan, config)

    def load(program: Program, worker: Worker, *, dropout: float) -> dict[str, Any]:
        """Let a program make its first update."""
        request: dict[str, Any] = {"folder": str(folder), "threads": options.threads}
        if program.environment is None:
            overrides = [*plan.overrides, f"model.dropout={dropout}"]
            request |= {"preset": plan.preset, "overrides": overrides, **program.settings}
        return worker.ask("load", **request)

    losses = {}  # of the first window without dropout, which must be the same for all
    for name, program in TRAINERS.items():
        if program.equal:
            worker = Worker(program, "train", options.threads)
            losses[name] = load(program, worker, dropout=0.0)["loss"]
            worker.close()
    workers, found = start_all(
        TRAINERS, "train", options, partial(load, dropout=config.model.dropout)
    )
    try:
        runs = {
            name: lambda worker=worker: worker.ask("run", steps=plan.steps)["seconds"]
            for name, worker in workers.items()
        }
        seconds = alternate(runs, repeats=options.repeats)
    finally:
        for worker in workers.values():
            worker.close()
    ours = [name for name in seconds if TRAINERS[name].is_ours]
    others = [name for name in seconds if name not in ours or name == OURS_FIRST]
    return {
        "settings": {"dropout": config.model.dropout, **asdict(plan)},
        "first_losses": losses,
        **found,
        "seconds": seconds,
        "tokens_per_second": throughputs(
            seconds, plan.batch_size * config.train.unroll_steps * plan.steps
        ),
        "ratios": ratios(seconds, ours, others),
    }


def main() -> None:
    """Parse, measure, print."""
    parser = new_parser(__doc__)
    parser.add_argument("--preset", choices=PRESETS, default="full")
    parser.add_argument("--shapes", nargs="+", choices=PLANS)
    parser.add_argument("--text", type=Path, help="tokenized, a sentence a line")
    parser.add_argument("--only", nargs="+", help="programs whose name has one of these parts")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    text, results = read_text(options.text), {}
    for shape in options.shapes or PRESETS[options.preset]:
        with tempfile.TemporaryDirectory() as folder:
            results[shape] = measure_shape(options, text, PLANS[shape], Path(folder))
        table = speed_table(results[shape], [*TABLE_PEERS, OURS_FIRST])
        print(f"{shape}\n{table}", file=sys.stderr, flush=True)
    sizes = {"text": text_metadata(text, options.text), "threads": options.threads}
    print_result("train", sizes, results)


if __name__ == "__main__":
    main()
