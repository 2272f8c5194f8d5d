"""`elmokit info` and `elmokit cache`, as a user types them."""

import json
import os
from pathlib import Path

import pytest

from elmokit.cli.commands import info as commands
from elmokit.corpus.shards import write_shards
from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.files.temporary import temporary_directory
from elmokit.tasks.inputs.layer_cache import keep_layers

from ..builders.command_line import elmokit
from ..builders.task_models import toy_model

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def folder(shared, tmp_path_factory):
    """One of each kind of thing that elmokit writes."""
    folder = tmp_path_factory.mktemp("info")
    for name in ("model", "run"):
        (folder / name).symlink_to(shared / name)
    (folder / "text.txt").write_text("I sat by the bank.\n", encoding="utf-8")
    elmokit("embed", folder / "text.txt", "-o", folder / "out.npz", "--model", folder / "model")
    write_shards([["I", "sat"], ["by"]], folder / "shards", metadata={"normalization": "NFC"})
    (folder / "vectors.txt").write_text("sat 1 2\nbank 3 4\n", encoding="utf-8")
    (folder / "vectors.txt.json").write_text('{"elmokit_version": "0.2", "tokenizer": "simple"}')
    results = {"experiment": "table6", "title": "t", "made": {"command": "c"}, "runs": [1, 2]}
    for name, content in {
        "experiment/results.json": results | {"missing": [3]},
        "stopped/run.json": {"elmokit_version": "0.2", "command": "embed", "config": {"a": 1}},
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    elmokit("vocab", folder / "text.txt", "-o", folder / "vocab.txt")
    elmokit("convert", folder / "model", folder / "original", "--weights", "w.hdf5")
    elmokit("explore", "--model", folder / "model", "--export", folder / "page")
    for name in ("rows.tsv", "rows.jsonl"):
        elmokit("surprisal", "en", folder / "text.txt", "-o", folder / name)
    return folder


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model", {"kind": "model", "layers": 3, "dim": 10, "max_characters": 14}),
        ("out.npz", {"kind": "embedding file", "num_sentences": 1, "num_words": 5, "dim": 10}),
        ("run", {"kind": "task run", "task": "sentiment", "labels": ["bad", "good"]}),
        ("shards", {"kind": "shards", "sentences": 2, "words": 3, "normalization": "NFC"}),
        ("vocab.txt", {"kind": "vocabulary", "words": 9}),
        ("vectors.txt", {"kind": "word vectors", "words": 2, "dim": 2, "tokenizer": "simple"}),
        ("experiment", {"kind": "experiment", "runs": 2, "missing_runs": 1}),
        ("stopped", {"kind": "unfinished run", "command": "embed"}),
        ("original/w.hdf5", {"kind": "model weights"}),
        ("original", {"kind": "model weights"}),
        ("rows.tsv", {"kind": "surprisal", "rows": 7}),
        ("rows.jsonl", {"kind": "surprisal", "rows": 7}),
        ("page", {"kind": "explorer page"}),
    ],
)
def test_facts_of_each_kind(folder, name, expected):
    (facts,) = json.loads(elmokit("info", folder / name, "--json").stdout)["items"]
    assert facts["path"] == str(folder / name)
    assert facts.items() >= expected.items()
    shown = elmokit("info", folder / name).stdout
    assert expected["kind"] in shown


def test_an_onnx_file_names_its_model(folder):
    pytest.importorskip("onnx")
    elmokit("convert", folder / "model", folder / "model.onnx")
    names = [folder / name for name in ("model", "model.onnx", "original/w.hdf5")]
    items = json.loads(elmokit("info", *names, "--json").stdout)["items"]
    model, found, weights = items
    assert (found["kind"], found["version"]) == ("ONNX model", model["version"])
    assert found["model_hash"] == weights["exported_from"]["model_hash"] == model["hash"]
    (folder / "model.onnx").write_bytes(b"no such thing")
    assert "model.onnx: damaged" in elmokit("info", folder / "model.onnx", expect=2).stderr
    assert "convert" in elmokit("info", folder / "model.onnx", expect=2).stderr


def test_what_is_a_part_of_something_is_told(folder, tmp_path):
    part = elmokit("info", folder / "model/model.safetensors", expect=2)
    assert "is a part of a model" in part.stderr
    for name in ("options.json", "a.hdf5", "b.hdf5"):
        (tmp_path / name).touch()
    assert "has options.json and 2 .hdf5 files" in elmokit("info", tmp_path, expect=2).stderr


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    native = tmp_path / "elmokit" / "native"
    native.mkdir(parents=True)
    (native / f"inference-{'0' * 20}.so").write_bytes(b"12345")
    (native / "notes.txt").touch()
    keep_layers(Embedder(toy_model()), [("I", "sat")])
    return tmp_path / "elmokit"


def test_sizes_are_shown_and_only_our_entries_cleared(cache):
    found = json.loads(elmokit("cache", "--json").stdout)
    assert found["kernels"] == {
        "path": str(cache / "native"), "entries": 1, "bytes": 5, "limit_bytes": None
    }  # fmt: skip
    assert found["layers"]["entries"] == 1
    assert found["layers"]["bytes"] > 2 * 3 * 16 * 2
    assert found["layers"]["limit_bytes"] == 10**10
    shown = elmokit("cache", "--clear").stdout
    assert "removed" in shown
    assert str(cache / "layers") in shown
    assert os.listdir(cache / "layers") == []
    assert os.listdir(cache / "native") == ["notes.txt"]


def test_what_a_killed_job_left_is_cleared(cache):
    elmokit("cache", "--clear")
    with temporary_directory(cache / "layers", "a" * 24) as path:
        name = path
    name.mkdir()
    elmokit("cache", "--clear")
    assert os.listdir(cache / "layers") == []


def test_entries_that_stay_are_no_success_and_keep_no_others(cache, monkeypatch):
    def refuse(path, **options):
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refuse)  # a kernel of another user
    with pytest.raises(InputError, match=r"Could not be removed: .*/inference-0.* \(1 in all\)"):
        commands.cache(clear=True)
    assert os.listdir(cache / "layers") == []
