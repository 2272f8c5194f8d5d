"""Semantic roles with all verbs of PropBank-EWT, of which table 1 takes 15,000.

    python benchmarks/srl_all_verbs.py data/srl-en-propbank-ewt --vectors vectors.bin --work srl

The network of table 1 (`elmokit experiment table1 --tasks srl`), for ten epochs. Every twelfth
block of 400 training sentences is held out and chooses the epoch; dev is scored once.
"""

import argparse
import io
import json
from pathlib import Path

from elmokit.config import from_dict
from elmokit.files.sources import open_stream
from elmokit.tasks.formats.reading import find_split
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task

SETTINGS = {
    "task": "srl", "hidden_dims": [128] * 4,
    "inputs": {"static_scale": "learned", "characters": True},
    "train": {"epochs": 10, "patience": 10, "batch_size": 32, "learning_rate": 2e-3,
              "schedule": "cosine"},
}  # fmt: skip


def write_verbs(source: Path, parts: dict[Path, bool | None]) -> None:
    """Write sentences with verbs: to each path the held-out blocks, the others, or all (None)."""
    files = {path: path.open("w", encoding="utf-8") for path in parts}
    with io.TextIOWrapper(open_stream(source), encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            sentence = json.loads(line)
            tags = sentence["pos"]
            sentence["predicates"] = [
                predicate
                for predicate in sentence["predicates"]
                if tags[predicate["index"]].startswith("V") or tags[predicate["index"]] == "MD"
            ]
            is_held_out = number // 400 % 12 == 5
            for path, held_out in parts.items():
                if sentence["predicates"] and held_out in (None, is_held_out):
                    files[path].write(json.dumps(sentence) + "\n")
    for file in files.values():
        file.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    train, held_out, dev = (options.work / f"{name}.jsonl" for name in ("train", "held", "dev"))
    write_verbs(find_split(options.data, "train", (".jsonl",)), {train: False, held_out: True})
    write_verbs(find_split(options.data, "dev", (".jsonl",)), {dev: None})
    config, run_dir = from_dict(TaskRunConfig, SETTINGS, source="srl"), options.work / "run"
    result = train_task(
        config, train, held_out, run_dir, model="en", vectors=options.vectors, resume=True
    )
    print(f"held out: {result.best.dev.value:.2f}, epoch {result.best.epoch}")
    print(f"dev: {TaskRun.load(run_dir, vectors=options.vectors).evaluate(dev).value:.2f}")


if __name__ == "__main__":
    main()
