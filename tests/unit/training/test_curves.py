import json
import os
import time

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.training.curves import (
    check_picture_name,
    new_figure,
    plot_run,
    read_training_run,
    write_picture,
)


@pytest.fixture
def run_dir(tmp_path):
    rows = [{"step": step, "loss": 5 / step, "forward_loss": 4 / step} for step in (1, 2, 3)]
    rows.append({"step": 3, "valid_forward": 90.0, "valid_backward": 80.0, "valid_mean": 84.9})
    write_log(tmp_path, rows)
    return tmp_path


def write_log(directory, rows):
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def set_age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def test_a_fine_tuning_run_has_perplexities_before_and_after(run_dir):
    assert read_training_run(run_dir).before == read_training_run(run_dir).after == {}
    (run_dir / "before.json").write_text('{"in_domain": {"mean": 300.5}}')
    found = read_training_run(run_dir)
    assert (found.before, found.after) == ({"in_domain": 300.5}, {})
    (run_dir / "after.json").write_text('{"in_domain": {"mean": 90}}')
    assert read_training_run(run_dir).after == {"in_domain": 90.0}


@pytest.mark.parametrize("name", ["before.json", "ngram.json"])
def test_damaged_files_are_named_and_empty_ones_are_being_written(run_dir, name):
    (run_dir / name).touch()
    assert read_training_run(run_dir).ngram is None
    for content in ('{"in_domain": 3}', '{"model": "x", "mean": "much"}', "[]", "{"):
        (run_dir / name).write_text(content)
        with pytest.raises(FormatError, match=name):
            read_training_run(run_dir)


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_plot_has_losses_perplexities_and_the_models_to_beat(run_dir, suffix, start):
    pytest.importorskip("matplotlib")
    (run_dir / "ngram.json").write_text('{"model": "Kneser-Ney", "mean": 99.5}')
    (run_dir / "before.json").write_text('{"in_domain": {"mean": 300.5}}')
    path = run_dir / f"plot.{suffix}"
    assert len(plot_run(run_dir, path).rows) == 4
    assert path.read_bytes().startswith(start)
    if suffix == "svg":
        for text in (b"Kneser-Ney", b"before fine-tuning", b"held-out perplexity"):
            assert b"<!-- " + text + b" -->" in path.read_bytes()  # text is drawn as paths


@pytest.mark.parametrize(
    ("log", "model", "is_running"),
    [
        (0, None, True), (3600, None, False), (0, 0, False), (3600, 3600, False),
        (0, 30, False),  # copied
        (0, 120, True),
        (0, 3600, True),  # finished then, and resumed with another limit
    ],
)  # fmt: skip
def test_a_run_goes_on_while_its_log_is_newer_than_its_model(run_dir, log, model, is_running):
    set_age(run_dir / "metrics.jsonl", log)
    if model is not None:
        (run_dir / "config.json").touch()
        set_age(run_dir / "config.json", model)
    assert read_training_run(run_dir).is_running is is_running


BEGINNINGS = {"a.png": b"\x89PNG", "a.PDF": b"%PDF", "a.svg": b"<?xml"}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_the_suffix_names_the_format(tmp_path, name):
    pytest.importorskip("matplotlib")
    check_picture_name(tmp_path / name)
    with pytest.raises(InputError, match=r"\.png"):
        check_picture_name(tmp_path / "a.gif")
    figure = new_figure(2, 1)
    assert figure.get_size_inches().tolist() == [2, 1]
    write_picture(figure, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(BEGINNINGS[name])
    assert [path.name for path in tmp_path.iterdir()] == [name]
