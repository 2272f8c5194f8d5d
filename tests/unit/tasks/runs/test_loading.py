"""Runs whose directory does not fit this version, or whose parts do not fit each other."""

import json

import pytest
from safetensors.torch import load_file, save_file

from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task
from elmokit.tasks.runs.training import TaskTrainConfig

from ....builders.task_models import toy_model


def written(run_dir):
    return json.loads((run_dir / "task.json").read_text(encoding="utf-8"))


def test_a_run_of_an_earlier_version_is_told(ner_run):
    metadata = written(ner_run)
    del metadata["config"]["inputs"]["layer_norm"]
    metadata["config"]["inputs"]["positions"] = None
    (ner_run / "task.json").write_text(json.dumps(metadata), encoding="utf-8")
    with pytest.raises(FormatError, match=r"/task\.json .*inputs\.positions, inputs\.layer_norm"):
        TaskRun.load(ner_run)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (FormatError, {"storage": "int4"}, r"/task\.json: unknown setting `storage`"),
        (
            ConfigError,
            {"config": {"task": "ner", "layers": 3}},
            r"/task\.json: unknown setting `layers`",
        ),
        (InputError, {"config": {"task": "parsing"}}, "no task 'parsing'"),
        (
            FormatError,
            {"config": {"task": "ner", "inputs": {"embeddings": "elmo"}}},
            r"/task\.json does not say .*inputs\.characters, .*of another version",
        ),
    ],
)
def test_what_a_newer_version_wrote_is_refused_with_its_version(kind, change, message, ner_run):
    path = ner_run / "task.json"
    metadata = written(ner_run) | change
    path.write_text(json.dumps(metadata), encoding="utf-8")
    with pytest.raises(kind, match=message) as raised:
        TaskRun.load(ner_run)
    assert "elmokit 99.1.0" not in str(raised.value)
    path.write_text(json.dumps(metadata | {"elmokit_version": "99.1.0"}), encoding="utf-8")
    with pytest.raises(kind, match=message) as raised:
        TaskRun.load(ner_run)
    assert str(raised.value).count("written by elmokit 99.1.0") == 1
    assert "train the task again" not in str(raised.value)


def test_weights_that_do_not_fit_what_is_written_name_a_tensor(ner_run):
    path, metadata = ner_run / "task.json", written(ner_run)
    fewer = metadata | {"labels": metadata["labels"][:-1]}
    path.write_text(json.dumps(fewer), encoding="utf-8")
    with pytest.raises(
        FormatError, match=r"(?s)/model\.safetensors: does not fit task\.json: .*again\.$"
    ):
        TaskRun.load(ner_run)
    path.write_text(json.dumps(metadata), encoding="utf-8")
    weights = ner_run / "model.safetensors"
    tensors = load_file(weights)
    name = next(iter(tensors))
    save_file(tensors | {"more": tensors[name].clone()}, weights)
    with pytest.raises(FormatError, match=r"(?s)model\.safetensors: .*\bmore\b"):
        TaskRun.load(ner_run)
    save_file({key: tensors[key] for key in tensors if key != name}, weights)
    with pytest.raises(FormatError, match=rf"(?s)model\.safetensors: .*{name}"):
        TaskRun.load(ner_run)


def test_a_bilm_that_has_moved_is_told_with_the_run(ner_run):
    metadata = written(ner_run)
    metadata["bilm"]["path"] = "/nowhere/model"
    (ner_run / "task.json").write_text(json.dumps(metadata), encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="no model '/nowhere/model'") as caught:
        TaskRun.load(ner_run)
    (note,) = caught.value.__notes__
    for part in (str(ner_run), "--model DIR", "TaskRun.load("):
        assert part in note
    with pytest.raises(FileNotFoundError, match="no model '/another'"):
        TaskRun.load(ner_run, model="/another")


def test_a_model_of_the_package_is_found_wherever_one_works(ner_run, tmp_path, monkeypatch):
    metadata = written(ner_run)
    metadata["bilm"]["path"] = "en"
    (ner_run / "task.json").write_text(json.dumps(metadata), encoding="utf-8")
    toy_model().save(tmp_path / "en")  # the very one, and yet not the one that is meant
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError, match=r"/models/en .*/run .*--model"):
        TaskRun.load(ner_run)
    assert TaskRun.load(ner_run, model="en").labels


def test_a_bilm_for_a_run_without_one_changes_nothing(tmp_path, caplog):
    data = tmp_path / "texts.tsv"
    data.write_text("text\tlabel\nIt's “good”.\t+\nBad.\t-\n", encoding="utf-8")
    config = TaskRunConfig(
        task="sentiment", hidden_dims=(4,), inputs=InputSettings(embeddings="none"),
        train=TaskTrainConfig(epochs=1),
    )  # fmt: skip
    train_task(config, data, data, tmp_path / "run")
    toy_model().save(tmp_path / "bilm")  # which splits at spaces alone
    run = TaskRun.load(tmp_path / "run", model=str(tmp_path / "bilm"))
    assert "/bilm has no effect" in caplog.text
    alone = TaskRun.load(tmp_path / "run")
    assert list(run.predict(["It's “good”."])) == list(alone.predict(["It's “good”."]))
