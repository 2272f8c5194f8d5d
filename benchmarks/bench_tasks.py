"""Seconds an epoch of each task takes: training on kept layers, and scoring the dev set.

    python benchmarks/bench_tasks.py --preset tiny
    python benchmarks/bench_tasks.py --data ner=DIR --data pos=DIR [--shape small] [--write]

Layers of a model with random weights (or of --model) are computed first and not counted. DIR has
one train… and one dev… file, as for `elmokit train`. Without --data, examples of every task are
made from the demo's text: good for a trial, not for figures to publish.
"""

import argparse
import itertools
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from common import Spread, describe, markdown_page, markdown_table, write_page
from shapes import CACHE_DIR, SHAPES, model_folder
from texts import Sentence, batches, read_text

from elmokit.tasks.formats.splits import find_split
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.runs.train_task import train_task
from elmokit.tasks.runs.training import EpochReport, TaskTrainConfig

ANSWER_WORDS = 2


@dataclass(frozen=True)
class Plan:
    """Sizes of a preset."""

    shape: str
    train_examples: int
    dev_examples: int
    hidden_dims: tuple[int, ...]
    """None: the task's own."""


PLANS = {"tiny": Plan("tiny", 24, 8, (8,)), "full": Plan("small", 4000, 800, ())}


def label_of(word: str, num_labels: int = 3) -> int:
    """Return a label that a word decides."""
    return sum(word.encode()) % num_labels


def as_conllu(sentences: Sequence[Sentence]) -> str:
    """Tag each word."""
    tags = ("NOUN", "VERB", "ADJ")
    return "".join(
        "".join(
            f"{number}\t{word}\t_\t{tags[label_of(word)]}" + "\t_" * 6 + "\n"
            for number, word in enumerate(words, 1)
        )
        + "\n"
        for words in sentences
    )


def as_columns(sentences: Sequence[Sentence]) -> str:
    """Make every third kind of word an entity."""
    tags = ("O", "O", "B-PER")
    return "".join(
        "".join(f"{word}\t{tags[label_of(word)]}\n" for word in words) + "\n" for words in sentences
    )


def as_roles(sentences: Sequence[Sentence]) -> str:
    """Make the first word a predicate and every third kind of the others an argument."""
    tags = ("O", "O", "B-ARG0")
    lines = []
    for words in sentences:
        roles = ["B-V", *(tags[label_of(word)] for word in words[1:])]
        predicate = {"index": 0, "pos": "VB", "tags": roles}
        lines.append(json.dumps({"tokens": words, "predicates": [predicate]}))
    return "\n".join(lines) + "\n"


def as_texts(sentences: Sequence[Sentence]) -> str:
    """Let the first word decide the label."""
    rows = (f"{' '.join(words)}\t{label_of(words[0])}\n" for words in sentences)
    return "text\tlabel\n" + "".join(rows)


def as_pairs(sentences: Sequence[Sentence]) -> str:
    """Let the first words of two sentences decide the label."""
    rows = (
        f"{' '.join(a)}\t{' '.join(b)}\t{int(label_of(a[0]) == label_of(b[0]))}\n"
        for a, b in zip(sentences, [*sentences[1:], sentences[0]], strict=True)
    )
    return "premise\thypothesis\tlabel\n" + "".join(rows)


def as_questions(sentences: Sequence[Sentence]) -> str:
    """Ask in each paragraph of five sentences for its first words."""
    paragraphs = []
    for number, start in enumerate(range(0, len(sentences), 5)):
        words = [word for sentence in sentences[start : start + 5] for word in sentence]
        answer = {"text": " ".join(words[:ANSWER_WORDS]), "answer_start": 0}
        question = {"id": str(number), "question": f"What is in {words[-2]}?", "answers": [answer]}
        paragraphs.append({"context": " ".join(words), "qas": [question]})
    return json.dumps({"version": "1.1", "data": [{"title": "demo", "paragraphs": paragraphs}]})


def as_documents(sentences: Sequence[Sentence]) -> str:
    """Say each sentence twice; its first words mean the same."""
    documents = []
    for number, words in enumerate(sentences):
        name, rows = f"{('bn', 'nw')[number % 2]}/{number}", ""
        for _ in range(2):
            marks = ["(0)"] + ["-"] * (len(words) - 1)
            rows += "".join(
                f"{name}\t0\t{place}\t{word}\t{mark}\n"
                for place, (word, mark) in enumerate(zip(words, marks, strict=True))
            )
            rows += "\n"
        documents.append(f"#begin document ({name}); part 0\n{rows}#end document\n")
    return "".join(documents)


MADE: dict[str, tuple[str, Callable[[Sequence[Sentence]], str]]] = {
    "pos": ("conllu", as_conllu),
    "ner": ("txt", as_columns),
    "srl": ("jsonl", as_roles),
    "sentiment": ("tsv", as_texts),
    "nli": ("tsv", as_pairs),
    "qa": ("json", as_questions),
    "coref": ("conll", as_documents),
}
"""Ending and maker of the examples of each task."""


def make_data(folder: Path, plan: Plan) -> dict[str, Path]:
    """Write examples of all tasks; return the directory of each."""
    sizes = {"train": plan.train_examples, "dev": plan.dev_examples}
    (sentences,) = batches(read_text(None), sum(sizes.values()), sum(sizes.values()))
    parts = {
        "train": sentences[: plan.train_examples],
        "dev": sentences[plan.train_examples :],
    }
    for task, (suffix, make) in MADE.items():
        (folder / task).mkdir()
        for split, part in parts.items():
            (folder / task / f"{split}.{suffix}").write_text(make(part), encoding="utf-8")
    return {task: folder / task for task in MADE}


def measure(
    task: str, data: Path, model: Path, plan: Plan, options: argparse.Namespace
) -> dict[str, Any]:
    """Train one task; return the seconds of its epochs after the first, and what was read."""
    reports: list[EpochReport] = []
    suffixes = find_task(task).suffixes
    widths = plan.hidden_dims * len(find_task(task).default_hidden_dims)
    config = TaskRunConfig(
        task=task,
        hidden_dims=widths,
        train=TaskTrainConfig(epochs=options.epochs + 1, patience=options.epochs + 1),
    )
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        train_task(
            config,
            find_split(data, "train", suffixes),
            find_split(data, "dev", suffixes),
            run_dir,
            model=str(model),
            cache_dir=options.cache / "layers",
            on_epoch=reports.append,
        )
        metadata = json.loads((run_dir / "task.json").read_text(encoding="utf-8"))
    ends = [0.0, *(report.seconds for report in reports)]
    epochs = [end - start for start, end in itertools.pairwise(ends)][1:]
    return {
        "data": data.name,
        "examples": metadata["data"]["examples"],
        "hidden_dims": metadata["config"]["hidden_dims"],
        "seconds": asdict(Spread.of(epochs)),
        "dev": {"metric": reports[-1].dev.metric, "value": reports[-1].dev.value},
    }


def page(description: dict[str, Any]) -> str:
    """Return the results as a Markdown page."""
    sizes = description["sizes"]
    rows = [
        [
            task, found["data"], f"{found['examples']:,}",
            f"{found['seconds']['median']:.1f}",
            f"{found['seconds']['low']:.1f}–{found['seconds']['high']:.1f}",
        ]
        for task, found in description["results"].items()
    ]  # fmt: skip
    headers = ["task", "data", "training examples", "seconds an epoch", "lowest–highest"]
    body = (
        f"Layers of {sizes['model']}, kept on disk; threads: {sizes['threads']}; {sizes['epochs']} "
        "epochs each. An epoch is training and scoring the dev set, without the layers.\n\n"
    )
    return markdown_page("Training of tasks", description, body + markdown_table(headers, rows))


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", choices=PLANS, default="full")
    parser.add_argument("--data", action="append", metavar="TASK=DIR", help="instead of made data")
    parser.add_argument("--shape", choices=SHAPES, help="of the model with random weights")
    parser.add_argument("--model", type=Path, help="a model directory instead")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=CACHE_DIR, help="weights and layers")
    parser.add_argument("--write", action="store_true", help="keep the table in results/")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    plan = PLANS[options.preset]
    shape = options.shape or plan.shape
    model = options.model or model_folder(shape, options.cache) / "model"
    with tempfile.TemporaryDirectory() as folder:
        given = dict(entry.split("=", 1) for entry in options.data or ())
        folders = {task: Path(path) for task, path in given.items()}
        folders = folders or make_data(Path(folder), plan)
        results = {
            task: measure(task, data, model, plan, options) for task, data in folders.items()
        }
    sizes = {
        "preset": options.preset, "threads": options.threads, "epochs": options.epochs,
        "model": model.name if options.model else f"the {shape} shape with random weights",
    }  # fmt: skip
    description = describe("tasks", sizes, results)
    print(json.dumps(description, indent=2, ensure_ascii=False))
    if options.write:
        print(f"written: {write_page('tasks', description, page(description))}", file=sys.stderr)


if __name__ == "__main__":
    main()
