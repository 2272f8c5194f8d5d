"""Directories of runs: saved apart from their training; damaged, old, or of other parts."""

import json

import pytest
from safetensors.torch import load_file, save_file

from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.tasks.runs.run_dir import read_metadata, read_weights
from elmokit.tasks.runs.task_run import TaskRun

from ....builders.task_models import toy_model

TEXTS = ("Minji Kim sat", "by the Bank", "")


@pytest.fixture
def run(ner_run):
    return TaskRun.load(ner_run)


@pytest.mark.parametrize(("dtype", "most"), [("float32", 1.01), ("float16", 0.6), ("int8", 0.45)])
def test_a_saved_run_is_smaller_and_answers_the_same(run, dtype, most, ner_run, tmp_path):
    if dtype == "int8":
        with pytest.raises(ValueError, match="round_to"):  # digits would be lost
            run.save(tmp_path / "saved", dtype=dtype)
        assert not (tmp_path / "saved").exists()
        assert run.metadata.get("weights", "float32") == "float32"
    run.round_to(dtype)
    run.save(tmp_path / "saved", dtype=dtype)
    saved = TaskRun.load(tmp_path / "saved")
    assert list(saved.predict_json(TEXTS)) == list(run.predict_json(TEXTS))
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("run", "saved")]
    assert sizes[1] < most * sizes[0]
    trained_card = (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    assert trained_card == run.card().replace(dtype, "float32")
    names = {path.name for path in (tmp_path / "saved").iterdir()}
    assert names == {"task.json", "model.safetensors", "README.md"}


def test_an_older_saved_run_is_replaced_and_nothing_else(run, ner_run, tmp_path):
    run.save(tmp_path / "saved")
    run.metadata["card"] = {"language": "xx"}
    run.metadata["bilm"]["path"] = "/models/\udce9t\udce9"  # a name that is not UTF-8
    run.save(tmp_path / "saved")
    card = (tmp_path / "saved" / "README.md").read_text(encoding="utf-8")
    assert card == run.card()
    assert "xx" in card
    assert r"`/models/\udce9t\udce9`" in card
    with pytest.raises(FileExistsError, match=r"/run exists .*not overwritten"):
        run.save(ner_run)  # with checkpoints


def test_damaged_weights_are_found(run, ner_run, tmp_path):
    def without(path, name):
        tensors = load_file(path)
        del tensors[name]
        save_file(tensors, path)

    run.round_to("int8")
    run.save(tmp_path / "saved", dtype="int8")
    path = tmp_path / "saved" / "model.safetensors"
    without(path, "to_tags.weight.scale")
    with pytest.raises(FormatError, match=r"/model\.safetensors: damaged.* SHA-256"):
        TaskRun.load(tmp_path / "saved")
    with pytest.raises(FormatError, match=r"to_tags\.weight.* one scale per row"):
        read_weights(tmp_path / "saved")
    without(ner_run / "model.safetensors", "to_tags.bias")
    with pytest.raises(FormatError, match=r"does not fit task\.json: .*to_tags\.bias"):
        TaskRun.load(ner_run)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (FormatError, {"storage": "int4"}, r"/task\.json: unknown setting `storage`"),
        (ConfigError, {"config": {"task": "ner", "layers": 3}}, r"/task\.json: .* `layers`"),
        (InputError, {"config": {"task": "parsing"}}, "no task 'parsing'"),
        (FormatError, {"config": {"task": "ner", "inputs": {"embeddings": "elmo"}}},
         r"/task\.json does not say .*inputs\.characters, .*of another version"),
        (FormatError, {"labels": ["O"]}, r"does not fit task\.json: .*again\."),
        (FormatError, {"labels": ["O", "O"]}, r"does not fit task\.json"),
        (FormatError, {"labels": list(map(str, range(1 << 16)))}, r"does not fit task\.json"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_what_is_newer_with_its_version(
    kind, change, message, ner_run
):
    path, metadata = ner_run / "task.json", read_metadata(ner_run) | change
    for version in ("0.1.0", "99.1.0"):
        path.write_text(json.dumps(metadata | {"elmokit_version": version}), encoding="utf-8")
        with pytest.raises(kind, match=f"(?s){message}") as raised:
            TaskRun.load(ner_run)
        is_newer = version == "99.1.0" and "labels" not in change
        assert str(raised.value).count("written by elmokit 99.1.0") == is_newer
        assert not is_newer or "train the task again" not in str(raised.value)


def test_a_bilm_that_has_moved_is_told_with_the_run(ner_run, tmp_path, monkeypatch):
    def move_to(path):
        metadata = read_metadata(ner_run)
        metadata["bilm"]["path"] = path
        (ner_run / "task.json").write_text(json.dumps(metadata), encoding="utf-8")

    move_to("/nowhere/model")
    with pytest.raises(FileNotFoundError, match="no model '/nowhere/model'") as caught:
        TaskRun.load(ner_run)
    (note,) = caught.value.__notes__
    assert all(part in note for part in (str(ner_run), "--model DIR", "TaskRun.load("))
    # A model of the package is found wherever one works: `en` there is not the one that is meant.
    move_to("en")
    toy_model().save(tmp_path / "en")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError, match=r"/models/en .*/run .*--model"):
        TaskRun.load(ner_run)
    assert TaskRun.load(ner_run, model="en").labels
