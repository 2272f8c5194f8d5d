"""A new task and a new tokenizer are one file and one line of a registry each.

Commands, their help texts and checks ask the registry.
"""

import json
import logging
import sys
from importlib import import_module
from types import ModuleType

import h5py
import pytest

from elmokit.tasks.registry import TASKS, TaskEntry
from elmokit.text.tokenizers import registry
from elmokit.text.tokenizers.registry import TOKENIZERS, RegisteredTokenizer, build_tokenizer

from ..builders import command_line
from . import test_tokenizers as contract

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
TASK = TaskEntry("elmokit.tasks.chunk", "ChunkTask", "phrases without overlap")
DATA = "She B-NP\nsat B-VP\nby B-PP\nthe B-NP\nriver I-NP\n\nIt B-NP\nrained B-VP\n\n"
TOKENIZER_FILE = '''
"""Words without what stands around them."""


class LowerTokenizer:
    """Words in lower case."""

    name = "lower"
    version = "1"

    def tokenize(self, sentence):
        return sentence.lower().split()

    def sentences(self, text):
        return [tokens for line in text.splitlines() if (tokens := self.tokenize(line))]
'''
TOKENIZER = RegisteredTokenizer("lower_tokenizer", "LowerTokenizer", "words in lower case")


def modules_of_commands():
    return [name for name in sys.modules if name.startswith("elmokit.cli")]


@pytest.fixture
def command(monkeypatch):
    """Run a command in this process; its modules are loaded again, with what was registered."""
    for entry, text in ((TASK, TASK_FILE), (TOKENIZER, TOKENIZER_FILE)):
        module = ModuleType(entry.module)
        exec(text, vars(module))
        monkeypatch.setitem(sys.modules, entry.module, module)
    monkeypatch.setitem(TASKS, "chunk", TASK)
    monkeypatch.setitem(TOKENIZERS, "lower", TOKENIZER)
    import_module("elmokit.cli")
    handlers = list(logging.getLogger("elmokit").handlers)
    for name in modules_of_commands():
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("elmokit.cli")
    yield lambda *words: command_line.elmokit(*words).stdout
    for name in modules_of_commands():
        del sys.modules[name]
    logging.getLogger("elmokit").handlers[:] = handlers
    registry._tokenizer.cache_clear()


def test_train_evaluate_predict_and_help_know_a_task(command, tmp_path):
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


@pytest.mark.usefixtures("command")
def test_a_tokenizer_passes_the_contract():
    tokenizer = build_tokenizer("lower")
    contract.test_it_is_a_tokenizer_with_name_and_version(tokenizer)
    contract.test_a_line_break_ends_a_sentence(tokenizer)
    contract.test_many_texts_at_once_give_the_same(tokenizer)
    contract.test_tokens_are_never_empty_and_hold_no_white_space(tokenizer)


def test_help_vocab_pretrain_and_embed_know_a_tokenizer(command, tmp_path):
    for name in ("vocab", "pretrain", "embed", "perplexity", "vectors"):
        shown = " ".join(command(name, "--help").replace("│", " ").split())
        assert "lower (words in lower case)" in shown
    text, output = tmp_path / "text.txt", tmp_path / "vectors.h5"
    text.write_text("The BANK of the River\n" * 400, encoding="utf-8")
    vocab = ("vocab", text, "-o", tmp_path / "vocab.txt", "--tokenizer", "lower", "--json")
    assert json.loads(command(*vocab))["tokenizer"] == {"name": "lower", "version": "1"}
    command(
        "pretrain", text, "-o", tmp_path / "run", "--preset", "toy", "--tokens", 500,
        "--set", 'text.tokenizer.name="lower"',
    )  # fmt: skip
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["tokenizer"] == {"name": "lower", "version": "1"}
    command("embed", text, "-o", output, "--model", tmp_path / "run", "--tokenizer", "lower")
    with h5py.File(output) as file:
        assert file["0"].shape[1] == 5
