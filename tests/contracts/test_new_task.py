"""A new tagging task is one file and one line of the registry: everything else asks the task."""

import json
import sys
from types import ModuleType

import pytest

from elmokit.tasks.registry import TASKS, TaskEntry

TASK_FILE = '''
"""Chunks: phrases without overlap, from columns of words and IOB2 tags."""

from dataclasses import replace

from elmokit.metrics.task_scores import convert_tags
from elmokit.tasks.formats.conll import read_columns
from elmokit.tasks.tagging import SpanTaggingTask


class ChunkTask(SpanTaggingTask):
    """Chunks."""

    name, field_names = "chunk", ("chunks", "type")

    def read(self, path, *, training, tokenize):
        return [
            replace(sentence, tags=tuple(convert_tags(sentence.tags, scheme="bioul")))
            for sentence in read_columns(path)
        ]
'''
ENTRY = TaskEntry("elmokit.tasks.chunk", "ChunkTask", "phrases without overlap")
DATA = "She B-NP\nsat B-VP\nby B-PP\nthe B-NP\nriver I-NP\n\nIt B-NP\nrained B-VP\n\n"


@pytest.fixture(autouse=True)
def chunk(monkeypatch):
    module = ModuleType(ENTRY.module)
    exec(TASK_FILE, vars(module))
    monkeypatch.setitem(sys.modules, ENTRY.module, module)
    monkeypatch.setitem(TASKS, "chunk", ENTRY)


def test_train_evaluate_predict_and_help_know_it(command, tmp_path):
    help_text = " ".join(command("train", "--help").split())
    assert "chunk: phrases without overlap" in help_text
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "dev"):
        (data / f"{split}.txt").write_text(DATA, encoding="utf-8")
    run, cache = tmp_path / "run", tmp_path / "layers"
    settings = ("--set", "hidden_dims=[24]", "--set", "train.learning_rate=0.01")
    command(
        "train", "chunk", "--data", data, "-o", run, "--embeddings", "none", "--epochs", 40,
        "--layer-cache", cache, *settings, "--set", "train.patience=40",
    )  # fmt: skip
    score = json.loads(command("evaluate", run, data / "dev.txt", "--json"))
    assert (score["metric"], score["value"]) == ("span F1", 100)
    text = tmp_path / "text.txt"
    text.write_text("She sat by the river\n", encoding="utf-8")
    shown = command("predict", run, text)
    assert shown == "[She NP] [sat VP] [by PP] [the river NP]\n"
    chunk = json.loads(command("predict", run, text, "--json"))["chunks"][-1]
    assert 0.01 < chunk.pop("probability") <= 1
    assert chunk == {
        "type": "NP", "text": "the river", "start": 11, "end": 20, "token_start": 3, "token_end": 5,
    }  # fmt: skip


def test_experiments_plan_and_sample_it(tmp_path):
    from elmokit.config import from_dict
    from elmokit.experiments.definitions import TaskSettings
    from elmokit.experiments.inputs import sample_file
    from elmokit.tasks.registry import find_task
    from elmokit.tasks.runs.run_dir import TaskRunConfig

    settings = TaskSettings(
        task="chunk", dataset="chunks", content="columns", hidden_dims=(8,), epochs=1
    )
    config = from_dict(TaskRunConfig, settings.to_config()).resolved(with_static=True)
    assert config.dropout == find_task("chunk").default_dropout
    source = tmp_path / "train.txt"
    source.write_text(DATA, encoding="utf-8")
    sample = sample_file(source, tmp_path / "sample", task="chunk", limit=1)
    assert len(find_task("chunk").read(sample, training=True, tokenize=str.split)) == 1
