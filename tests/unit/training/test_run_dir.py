"""The run directory: opened, gone on with, closed."""

import json

import pytest

from elmokit.errors import ConfigError
from elmokit.training import run_dir as run_dir_module
from elmokit.training.run_dir import BEST, RUN_FILE, open_run, publish_best, record_run, write_json

from .models import toy_model

SETTINGS = {"config": {"train": {"seed": 0, "steps": 5}, "vocab": {"size": 9}}, "corpus": ["a"]}


class TestOpening:
    def test_a_new_directory_is_made_and_taken_once_recorded(self, tmp_path):
        run_dir = tmp_path / "deep" / "run"
        open_run(run_dir, SETTINGS, resume=False)
        open_run(run_dir, SETTINGS, resume=False)  # preparing the text failed: try again
        record_run(run_dir, SETTINGS)
        with pytest.raises(FileExistsError, match=r"holds a training run already\. Add --resume"):
            open_run(run_dir, SETTINGS, resume=False)
        assert json.loads((run_dir / RUN_FILE).read_text())["config"] == SETTINGS["config"]

    def test_resuming_needs_the_same_configuration_but_not_the_same_corpus_path(self, tmp_path):
        record_run(tmp_path, SETTINGS)
        open_run(tmp_path, {**SETTINGS, "corpus": ["/moved/a"]}, resume=True)
        other = {"config": {"train": {"seed": 7, "steps": 5}, "vocab": {"size": 9}}}
        with pytest.raises(ConfigError, match=r"this run has train.seed=0, the command says 7"):
            open_run(tmp_path, other, resume=True)

    def test_a_setting_that_only_one_side_has_is_a_difference(self, tmp_path):
        record_run(tmp_path, SETTINGS)
        with pytest.raises(ConfigError, match=r"vocab.size=9, the command says None"):
            open_run(tmp_path, {"config": {**SETTINGS["config"], "vocab": {}}}, resume=True)

    def test_resuming_what_was_never_begun_begins(self, tmp_path):
        open_run(tmp_path, SETTINGS, resume=True)

    def test_a_resumed_run_keeps_its_first_record(self, tmp_path):
        record_run(tmp_path, SETTINGS)
        record_run(tmp_path, {"config": {}})
        assert json.loads((tmp_path / RUN_FILE).read_text())["config"] == SETTINGS["config"]

    def test_a_model_of_another_origin_is_not_overwritten(self, tmp_path):
        toy_model().save(tmp_path / "model")
        with pytest.raises(FileExistsError, match="holds a model already"):
            open_run(tmp_path / "model", SETTINGS, resume=False)


def test_json_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "facts.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}


class TestPublishing:
    def test_the_run_directory_becomes_the_model(self, tmp_path):
        model = toy_model()
        model.save(tmp_path / BEST)
        (tmp_path / "run.json").write_text("{}")
        names = {path.name for path in (tmp_path / BEST).iterdir()}
        publish_best(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == names | {"run.json"}

    def test_a_kill_on_the_way_can_be_made_good(self, tmp_path, monkeypatch):
        toy_model().save(tmp_path / BEST)
        copied = []

        def dies(source, target):
            copied.append(source.name)
            if len(copied) == 3:
                raise KeyboardInterrupt
            target.write_bytes(source.read_bytes())

        with monkeypatch.context() as patch:
            patch.setattr(run_dir_module.shutil, "copyfile", dies)
            with pytest.raises(KeyboardInterrupt):
                publish_best(tmp_path)
        assert "config.json" not in copied, "a directory without it is no model yet"
        publish_best(tmp_path)
        assert not (tmp_path / BEST).exists()
        assert (tmp_path / "config.json").exists()
