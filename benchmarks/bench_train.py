"""Training beside what a user would run instead: tokens a second, ratios.

    python benchmarks/bench_embed.py --make-environments
    python benchmarks/bench_train.py --preset tiny
    python benchmarks/bench_train.py --text wiki.txt > results.json

Ours is `elmokit.training.pretraining.pretrain` whole, with its data preparation; it stops between
two updates while another program works. The plain stack is `nn.LSTM(proj_size=…)` under PyTorch's
autograd with
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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Spread, alternate, describe, speed_ratio, speed_table
from peers import TRAINERS, PeerError, Program, Worker, close_all
from shapes import CACHE_DIR
from texts import Sentence, read_text, text_metadata

from elmokit import CharVocab, WordVocab
from elmokit.corpus.shards import write_shards
from elmokit.corpus.stream import WindowStream
from elmokit.corpus.windows import WindowBatch
from elmokit.text.char_vocab import CHAR_PADDING
from elmokit.training.pretraining.presets import pretrain_config
from elmokit.training.pretraining.pretrain import PretrainConfig

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
            f"train.batch_size={self.batch_size}",
            "train.unroll_steps=20",
            "softmax.kind=sampled",
            f"softmax.num_samples={self.num_samples}",
        ]


PLANS = {
    "small": Plan("small", 128, 8192, 100_000, 3),
    "original": Plan("original", 128, 8192, 100_000, 2),
    "tiny": Plan("tiny", 64, 2048, 30_000, 5),
    "trial": Plan("tiny", 4, 64, 500, 1),
}
PRESETS = {"full": ("small", "original", "tiny"), "tiny": ("trial",)}


def write_task(folder: Path, text: Sequence[Sentence], plan: Plan, config: PretrainConfig) -> None:
    """Write what all programs read: shards, vocabulary, and for bilm-tf windows and options.

    A text with fewer distinct words than the vocabulary is to have is filled up with made-up ones.
    """
    shards = write_shards(
        text,
        folder / "shards",
        metadata={"tokenizer": {"name": "whitespace", "version": ""}, "normalization": "NFC"},
    )
    counts = Counter(word for sentence in text for word in sentence)
    specials = ["<S>", "</S>", "<UNK>"]
    known = [word for word, _ in counts.most_common() if word not in specials]
    filled = [*known, *(f"\u2063{index}" for index in range(plan.vocab))]
    vocab = WordVocab([*specials, *filled][: plan.vocab])
    vocab.write(folder / "vocab.txt")
    stream = WindowStream(
        shards,
        vocab,
        CharVocab(config.model.char_vocab),
        batch_size=plan.batch_size,
        num_steps=config.train.unroll_steps,
        seed=config.train.seed,
    )
    windows = [batch for batch, _ in islice(stream, NUM_WINDOWS)]
    arrays: dict[str, Any] = bilm_tf_windows(windows)
    np.savez(folder / "windows.npz", **arrays)
    (folder / "bilm_tf_options.json").write_text(
        json.dumps(bilm_tf_options(plan, config)), encoding="utf-8"
    )


def bilm_tf_windows(windows: Sequence[WindowBatch]) -> dict[str, np.ndarray]:
    """Return windows (windows, B, T, …) with the original's ids, which begin at 0."""
    chars = [window.char_ids.astype(np.int32) - 1 for window in windows]
    return {
        "forward_chars": np.stack(
            [c[w.forward_inputs] for c, w in zip(chars, windows, strict=True)]
        ),
        "backward_chars": np.stack(
            [c[w.backward_inputs] for c, w in zip(chars, windows, strict=True)]
        ),
        "forward_targets": np.stack([w.forward_targets - 1 for w in windows]),
        "backward_targets": np.stack([w.backward_targets - 1 for w in windows]),
    }


def bilm_tf_options(plan: Plan, config: PretrainConfig) -> dict[str, Any]:
    """Return bilm-tf's options for the same network."""
    char_cnn, lstm = config.model.char_cnn, config.model.lstm
    assert char_cnn is not None
    return {
        "bidirectional": True,
        "char_cnn": {
            "activation": char_cnn.activation,
            "embedding": {"dim": char_cnn.embedding_dim},
            "filters": char_cnn.filters,
            "max_characters_per_token": config.model.char_vocab.max_characters,
            "n_characters": CHAR_PADDING + 1,
            "n_highway": char_cnn.num_highway,
        },
        "lstm": {
            "cell_clip": lstm.cell_clip,
            "proj_clip": lstm.projection_clip,
            "dim": lstm.cell_dim,
            "n_layers": lstm.num_layers,
            "projection_dim": lstm.projection_dim,
            "use_skip_connections": lstm.skip_connections,
        },
        "dropout": config.model.dropout,
        "all_clip_norm_val": 10.0,
        "learning_rate": 0.2,
        "batch_size": plan.batch_size,
        "unroll_steps": config.train.unroll_steps,
        "n_tokens_vocab": plan.vocab,
        "n_negative_samples_batch": plan.num_samples,
    }


def start(
    program: Program, options: argparse.Namespace, folder: Path, plan: Plan, *, dropout: float
) -> tuple[Worker, dict[str, Any]]:
    """Start a program and let it make its first update.

    Raises:
        FileNotFoundError, PeerError: if it cannot.
    """
    worker = program.start(options.environments, threads=options.threads)
    request: dict[str, Any] = {"folder": str(folder), "threads": options.threads}
    if program.environment is None:
        overrides = [*plan.overrides, f"model.dropout={dropout}"]
        request |= {"preset": plan.preset, "overrides": overrides, **program.settings}
    try:
        return worker, worker.ask("load", **request)
    except PeerError:
        worker.close()
        raise


def first_losses(options: argparse.Namespace, folder: Path, plan: Plan) -> dict[str, float]:
    """Return the losses of the first window without dropout, which must be the same for all."""
    losses = {}
    for name, program in TRAINERS.items():
        if program.equal:
            worker, loaded = start(program, options, folder, plan, dropout=0.0)
            worker.close()
            losses[name] = loaded["loss"]
    return losses


def measure_shape(
    options: argparse.Namespace, text: Sequence[Sentence], name: str, folder: Path
) -> dict[str, Any]:
    """Run all programs on one shape in turns."""
    plan = PLANS[name]
    config = pretrain_config(plan.preset, overrides=plan.overrides)
    write_task(folder, text, plan, config)
    losses = first_losses(options, folder, plan)
    workers: dict[str, Worker] = {}
    versions, skipped = {}, {}
    try:
        for program_name, program in TRAINERS.items():
            if options.only and not any(part in program_name for part in options.only):
                continue
            try:
                worker, loaded = start(program, options, folder, plan, dropout=config.model.dropout)
            except (FileNotFoundError, PeerError) as error:
                skipped[program_name] = str(error)
            else:
                workers[program_name], versions[program_name] = worker, loaded["versions"]
        runs: dict[str, Callable[[], float]] = {
            key: lambda worker=worker: worker.ask("run", steps=plan.steps)["seconds"]
            for key, worker in workers.items()
        }
        seconds = alternate(runs, repeats=options.repeats)
    finally:
        close_all(list(workers.values()))
    tokens = plan.batch_size * config.train.unroll_steps * plan.steps
    return {
        "settings": {"dropout": config.model.dropout, **asdict(plan)},
        "first_losses": losses,
        "skipped": skipped,
        "versions": versions,
        **summarize(seconds, tokens),
    }


def summarize(seconds: dict[str, list[float]], tokens: int) -> dict[str, Any]:
    """Turn seconds into throughputs and ratios to peers and to fp32."""
    ours = [name for name in seconds if TRAINERS[name].is_ours]
    others = [name for name in seconds if name not in ours]
    return {
        "seconds": seconds,
        "tokens_per_second": {
            name: asdict(Spread.of([tokens / second for second in times]))
            for name, times in seconds.items()
        },
        "ratios": {
            name: {
                other: asdict(speed_ratio(seconds[name], seconds[other]))
                for other in [*others, OURS_FIRST]
                if other in seconds and other != name
            }
            for name in ours
        },
    }


def shape_table(found: dict[str, Any]) -> str:
    """Return a shape as a table, a row each program."""
    compared = [*TABLE_PEERS, OURS_FIRST]
    return speed_table(found, compared)


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", choices=PRESETS, default="full")
    parser.add_argument("--shapes", nargs="+", choices=PLANS)
    parser.add_argument(
        "--text", type=Path, help="tokenized, a sentence a line; default: demo text"
    )
    parser.add_argument("--only", nargs="+", help="programs whose name has one of these parts")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--environments", type=Path, default=CACHE_DIR / "environments")
    return parser.parse_args()


def main() -> None:
    """Parse, measure, print."""
    options = parse_options()
    torch.set_num_threads(options.threads)
    text = read_text(options.text)
    results = {}
    for shape in options.shapes or PRESETS[options.preset]:
        with tempfile.TemporaryDirectory() as folder:
            results[shape] = measure_shape(options, text, shape, Path(folder))
        print(f"{shape}\n{shape_table(results[shape])}", file=sys.stderr, flush=True)
    sizes = {
        "text": text_metadata(text, options.text),
        "threads": options.threads,
        "repeats": options.repeats,
    }
    description = describe("train", sizes, results)
    print(json.dumps(description, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
