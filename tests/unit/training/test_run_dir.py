"""The run directory: opened, gone on with, closed."""

import json
import logging
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from elmokit.config import to_dict
from elmokit.errors import ConfigError
from elmokit.files.json_files import write_json
from elmokit.training.pretraining.presets import pretrain_config
from elmokit.training.pretraining.start import FIXED_SETTINGS
from elmokit.training.run_dir import (
    MARK,
    RUN_FILE,
    absolute_paths,
    check_run,
    command_of,
    exclusive_lock,
    is_recorded,
    mark_run,
    record_run,
)

from ...builders.training_models import toy_model


@dataclass(frozen=True, kw_only=True)
class Train:
    """Some settings, fixed (``seed``) and not."""

    seed: int = 0
    log_steps: int = 10


@dataclass(frozen=True, kw_only=True)
class Config:
    """Of a run."""

    train: Train = field(default_factory=Train)


CONFIG = Config()
OTHER = {
    "model.dropout": 0.3, "text.tokens_per_shard": 9, "vocab.min_count": 5, "softmax.kind": "full",
    "optimizer.name": "adagrad", "train.batch_size": 8, "train.unroll_steps": 3, "train.seed": 7,
    "train.shuffle": "none", "train.precision": "bf16",
}  # fmt: skip
"""Other values than those of the toy preset."""
ORIGIN = {"corpus": ["a.txt"], "valid": [], "vocab": "counted", "reader": None}


def open_run(run_dir, config, origin, *, resume):
    check_run(run_dir, config, origin, resume=resume, fixed=FIXED_SETTINGS)
    mark_run(run_dir)


class TestOpening:
    def test_a_new_directory_is_made_and_taken_once_recorded(self, tmp_path):
        run_dir = tmp_path / "deep" / "run"
        open_run(run_dir, CONFIG, ORIGIN, resume=False)
        (run_dir / "shards").mkdir()
        open_run(run_dir, CONFIG, ORIGIN, resume=False)  # preparing the text failed: try again
        assert not is_recorded(run_dir)
        record_run(run_dir, CONFIG, ORIGIN)
        with pytest.raises(FileExistsError, match=r"/deep/run .*--resume"):
            open_run(run_dir, CONFIG, ORIGIN, resume=False)
        assert json.loads((run_dir / RUN_FILE).read_text())["config"] == to_dict(CONFIG)
        assert {path.name for path in run_dir.iterdir()} == {RUN_FILE, "shards"}

    @pytest.mark.parametrize("resume", [False, True])
    def test_a_directory_with_other_files_is_refused(self, tmp_path, resume):
        (tmp_path / "vocab.txt").write_text("mine")
        with pytest.raises(FileExistsError, match=rf"{tmp_path.name} .*'vocab\.txt'"):
            open_run(tmp_path, CONFIG, ORIGIN, resume=resume)
        assert [path.name for path in tmp_path.iterdir()] == ["vocab.txt"]

    def test_a_file_is_refused_in_plain_words(self, tmp_path):
        path = tmp_path / "taken"
        path.touch()
        with pytest.raises(NotADirectoryError, match=r"/taken .*--output"):
            open_run(path, CONFIG, ORIGIN, resume=False)

    def test_an_empty_directory_is_taken(self, tmp_path):
        open_run(tmp_path, CONFIG, ORIGIN, resume=False)
        assert (tmp_path / MARK).exists()

    def test_resuming_what_was_never_begun_begins(self, tmp_path):
        open_run(tmp_path, CONFIG, ORIGIN, resume=True)
        assert (tmp_path / MARK).exists()
        assert not is_recorded(tmp_path)

    def test_a_resumed_run_keeps_its_first_record(self, tmp_path):
        record_run(tmp_path, CONFIG, ORIGIN)
        record_run(tmp_path, Config(train=Train(seed=8)), ORIGIN)
        assert json.loads((tmp_path / RUN_FILE).read_text())["config"] == to_dict(CONFIG)

    def test_a_model_of_another_origin_is_not_overwritten(self, tmp_path):
        toy_model().save(tmp_path / "model")
        with pytest.raises(FileExistsError, match="/model "):
            open_run(tmp_path / "model", CONFIG, ORIGIN, resume=False)


class TestResuming:
    @pytest.fixture
    def run_dir(self, tmp_path):
        origin = {"model": {"path": "base", "hash": "1f"}, **ORIGIN}
        record_run(tmp_path, CONFIG, {**origin, "corpus": absolute_paths([Path("a.txt")])})
        return tmp_path

    def test_what_the_checkpoint_rests_on_must_be_the_same(self, run_dir):
        with pytest.raises(ConfigError, match=r"/run\.json: train\.seed .*\b0 .*\b7\."):
            open_run(run_dir, Config(train=Train(seed=7)), ORIGIN, resume=True)

    @pytest.mark.parametrize("key", OTHER)
    def test_no_fixed_setting_may_change(self, tmp_path, key):
        record_run(tmp_path, pretrain_config("toy"), ORIGIN)
        other = pretrain_config("toy", overrides=[f"{key}={OTHER[key]}"])
        with pytest.raises(ConfigError, match=rf"/run\.json: {key} was .* is now '?{OTHER[key]}"):
            check_run(tmp_path, other, ORIGIN, resume=True, fixed=FIXED_SETTINGS)

    def test_every_fixed_setting_has_a_case(self):
        for fixed in FIXED_SETTINGS:
            assert any(f"{key}.".startswith(f"{fixed}.") for key in OTHER), fixed

    def test_other_settings_may_change_and_are_logged(self, run_dir, caplog):
        with caplog.at_level(logging.INFO, logger="elmokit"):
            open_run(run_dir, Config(train=Train(log_steps=3)), ORIGIN, resume=True)
        assert "train.log_steps was 10 and is now 3" in caplog.text

    def test_a_setting_that_is_newer_than_the_run_has_its_default(self, run_dir):
        record = json.loads((run_dir / RUN_FILE).read_text())
        del record["config"]["train"]["seed"]
        write_json(run_dir / RUN_FILE, record)
        open_run(run_dir, CONFIG, ORIGIN, resume=True)
        with pytest.raises(ConfigError, match=r"/run\.json: train\.seed .*\b0 .*\b7\."):
            open_run(run_dir, Config(train=Train(seed=7)), ORIGIN, resume=True)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("corpus", ["a.txt", "b.txt"]),
            ("valid", ["b.txt"]),
            ("vocab", "sha256 77"),
            ("reader", "nli, words"),
            ("model", {"path": "base", "hash": "2e"}),
        ],
    )
    def test_the_origin_must_be_the_same(self, run_dir, key, value):
        with pytest.raises(
            ConfigError, match=rf"/run\.json: {key} .* '?{re.escape(str(value))}'?\."
        ):
            open_run(run_dir, CONFIG, {**ORIGIN, key: value}, resume=True)

    def test_an_origin_that_is_newer_than_the_run_is_not_compared(self, run_dir):
        record = json.loads((run_dir / RUN_FILE).read_text())
        del record["reader"]
        write_json(run_dir / RUN_FILE, record)
        open_run(run_dir, CONFIG, {**ORIGIN, "reader": "nli, words"}, resume=True)

    @pytest.mark.parametrize("path", ["a\0b", "\ud800"])
    def test_a_recorded_path_that_is_none_differs(self, run_dir, path):
        record = json.loads((run_dir / RUN_FILE).read_text())
        write_json(run_dir / RUN_FILE, record | {"corpus": [path]})
        with pytest.raises(ConfigError, match=r"run\.json: corpus was "):
            check_run(run_dir, CONFIG, ORIGIN, resume=True, fixed=FIXED_SETTINGS)

    def test_the_spelling_of_paths_may_differ(self, run_dir):
        moved = {"path": "elsewhere/base", "hash": "1f"}
        for path in ("a.txt", str(Path.cwd() / "a.txt")):
            open_run(run_dir, CONFIG, {**ORIGIN, "corpus": [path], "model": moved}, resume=True)

    def test_a_run_of_an_older_version_recorded_less(self, tmp_path):
        record_run(tmp_path, CONFIG, {"corpus": ["a.txt"]})
        open_run(tmp_path, CONFIG, ORIGIN, resume=True)


@dataclass(frozen=True, kw_only=True)
class TaskConfig(Config):
    task: str = "ner"


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(Config):
    model: dict = field(default_factory=dict)


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_of_another_command_is_told(tmp_path, resume):
    configs = {"train": TaskConfig(), "pretrain": PretrainConfig(), "finetune": Config()}
    for written_by, written in configs.items():
        run_dir = tmp_path / written_by
        record_run(run_dir, written, ORIGIN)
        assert command_of(run_dir) == written_by
        for command, config in configs.items():
            if command != written_by:
                with pytest.raises(
                    FileExistsError,
                    match=f"run of `elmokit {written_by}`.*`elmokit {command}`.*"
                    f"`elmokit {written_by} .* -o {run_dir} --resume`",
                ):
                    check_run(run_dir, config, ORIGIN, resume=resume, fixed=())


def test_json_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "facts.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}


def test_a_directory_is_trained_in_once_and_what_the_lock_leaves_is_no_run(tmp_path):
    with exclusive_lock(tmp_path):
        refused = pytest.raises(FileExistsError, match=rf"{tmp_path.name}\. .*--resume")
        with refused, exclusive_lock(tmp_path):
            pytest.fail("two hold one directory")
    open_run(tmp_path, CONFIG, ORIGIN, resume=False)
