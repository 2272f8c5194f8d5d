"""What bf16 and int8 vectors cost a tagger that was trained on fp32 ones: accuracy of its tags.

    python benchmarks/bench_tagger.py --model DIR --train train.conllu --dev dev.conllu [--write]

A linear classifier of universal part-of-speech tags over all layers of a word, trained on fp32
vectors with Adam, then given the vectors of each precision of the dev sentences.
"""

import argparse
import gzip
import json
import lzma
import sys
from pathlib import Path

import numpy as np
import torch
from common import describe, markdown_page, markdown_table, write_page
from torch import nn
from torch.nn import functional

from elmokit import Embedder

MAX_WORDS = 60_000
"""Words to train on."""
EPOCHS, BATCH, RATE = 5, 256, 1e-3
OPENERS = {".gz": gzip.open, ".xz": lzma.open}
WORD, TAG = 1, 3
"""Columns of CoNLL-U."""


def read_tags(path: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words and the universal tags of the sentences of a CoNLL-U file."""
    words: list[list[str]] = [[]]
    tags: list[list[str]] = [[]]
    with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
        for line in file:
            columns = line.rstrip("\n").split("\t")
            if len(columns) > TAG and columns[0].isdigit():
                words[-1].append(columns[WORD])
                tags[-1].append(columns[TAG])
            elif not line.strip() and words[-1]:
                words.append([])
                tags.append([])
    return [s for s in words if s], [s for s in tags if s]


def features(embedder: Embedder, sentences: list[list[str]]) -> torch.Tensor:
    """Return all layers of every word side by side, (words, L * 2D)."""
    arrays = [array.transpose(1, 0, 2) for array in embedder.embed(sentences)]
    return torch.from_numpy(np.concatenate(arrays)).flatten(1)


def train(x: torch.Tensor, y: torch.Tensor, num_tags: int, *, seed: int) -> nn.Module:
    """Fit the classifier."""
    torch.manual_seed(seed)
    tagger = nn.Sequential(nn.BatchNorm1d(x.shape[1]), nn.Linear(x.shape[1], num_tags))
    optimizer = torch.optim.Adam(tagger.parameters(), lr=RATE)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            functional.cross_entropy(tagger(x[batch]), y[batch]).backward()
            optimizer.step()
    return tagger.eval()


def main() -> None:
    """Parse, train, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="keep the table in results/")
    options = parser.parse_args()
    words, tags = read_tags(options.train)
    count = int(np.searchsorted(np.cumsum([len(s) for s in words]), MAX_WORDS))
    words, tags = words[:count], tags[:count]
    names = sorted({tag for sentence in tags for tag in sentence})
    numbers = {tag: number for number, tag in enumerate(names)}
    dev_words, dev_tags = read_tags(options.dev)
    gold = torch.tensor([numbers.get(tag, -1) for sentence in dev_tags for tag in sentence])
    y = torch.tensor([numbers[tag] for sentence in tags for tag in sentence])
    x = features(Embedder.load(options.model), words)
    dev = {
        precision: features(Embedder.load(options.model, precision=precision), dev_words)
        for precision in ("fp32", "bf16", "int8")
    }
    accuracy: dict[str, list[float]] = {precision: [] for precision in dev}
    for seed in range(options.seeds):
        tagger = train(x, y, len(names), seed=seed)
        with torch.inference_mode():
            for precision, vectors in dev.items():
                right = (tagger(vectors).argmax(dim=1) == gold).double().mean()
                accuracy[precision].append(100 * float(right))
    sizes = {
        "model": options.model.name, "train": options.train.name, "words": len(y),
        "dev": options.dev.name, "dev_words": len(gold), "seeds": options.seeds,
    }  # fmt: skip
    means = {precision: float(np.mean(found)) for precision, found in accuracy.items()}
    description = describe("tagger", sizes, {"accuracy": accuracy, "mean": means})
    print(json.dumps(description, indent=2, ensure_ascii=False))
    if options.write:
        rows = [
            [precision, f"{mean:.2f}", f"{mean - means['fp32']:+.2f}"]
            for precision, mean in means.items()
        ]
        table = markdown_table(["vectors", "accuracy, %", "to fp32, points"], rows)
        text = f"Linear POS tagger trained on fp32 vectors of {sizes['model']}; mean of seeds.\n\n"
        page = markdown_page("A tagger given other precisions", description, text + table)
        print(f"written: {write_page('tagger', description, page)}", file=sys.stderr)


if __name__ == "__main__":
    main()
