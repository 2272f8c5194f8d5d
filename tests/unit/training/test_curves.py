import json
import os
import time

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.training.curves import (
    MAX_ROWS,
    check_run_dir,
    plot_run,
    read_training_run,
)


@pytest.fixture
def run_dir(tmp_path):
    rows = [{"step": step, "loss": 5 / step, "forward_loss": 4 / step} for step in (1, 2, 3)]
    rows.append({"step": 3, "valid_forward": 90.0, "valid_backward": 80.0, "valid_mean": 84.9})
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return tmp_path


def test_a_fine_tuning_run_has_perplexities_before_and_after(run_dir):
    assert read_training_run(run_dir).before == read_training_run(run_dir).after == {}
    (run_dir / "before.json").write_text('{"in_domain": {"mean": 300.5}}')
    found = read_training_run(run_dir)
    assert (found.before, found.after) == ({"in_domain": 300.5}, {})
    (run_dir / "after.json").write_text('{"in_domain": {"mean": 90}}')
    assert read_training_run(run_dir).after == {"in_domain": 90.0}


def test_a_run_that_does_not_say_its_command_is_drawn(run_dir):
    rows = len(read_training_run(run_dir).rows)
    (run_dir / "run.json").write_text('{"elmokit_version": "0.1"}')
    assert len(read_training_run(run_dir).rows) == rows


def test_a_long_log_is_thinned_but_for_its_perplexities(run_dir):
    rows = []
    for step in range(1, 5001):
        rows.append({"step": step, "loss": 1.0})
        if step % 199 == 0:
            rows.append(
                {"step": step, "valid_forward": 9.0, "valid_backward": 9.0, "valid_mean": 9}
            )
    (run_dir / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    run = read_training_run(run_dir)
    assert run.num_rows == len(rows)
    assert len(run.rows) < MAX_ROWS
    assert sum("valid_mean" in row for row in run.rows) == 25
    assert run.rows[-1] == rows[-1]


@pytest.mark.parametrize("name", ["before.json", "ngram.json"])
def test_damaged_files_are_named(run_dir, name):
    (run_dir / name).write_text('{"in_domain": 3}')
    with pytest.raises(FormatError, match=name):
        read_training_run(run_dir)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_plot_has_losses_perplexities_and_the_models_to_beat(run_dir, suffix):
    pytest.importorskip("matplotlib")
    (run_dir / "ngram.json").write_text('{"model": "Kneser-Ney", "mean": 99.5}')
    (run_dir / "before.json").write_text('{"in_domain": {"mean": 300.5}}')
    path = run_dir / f"plot.{suffix}"
    assert len(plot_run(run_dir, path).rows) == 4
    content = path.read_bytes()
    assert content.startswith({"png": b"\x89PNG", "svg": b"<?xml"}[suffix])
    if suffix == "svg":
        for text in (b"Kneser-Ney", b"before fine-tuning", b"held-out perplexity"):
            assert b"<!-- " + text + b" -->" in content  # matplotlib draws text as paths


def test_a_base_model_with_infinite_perplexity_has_no_line(run_dir):
    pytest.importorskip("matplotlib")
    (run_dir / "before.json").write_text('{"in_domain": {"mean": null}}')
    path = run_dir / "plot.svg"
    assert plot_run(run_dir, path).before == {"in_domain": None}
    assert b"<!-- before fine-tuning -->" not in path.read_bytes()


AGES = {"now": 0, "shortly before": 30, "minutes before": 120, "an hour ago": 3600}


@pytest.mark.parametrize(
    ("log", "model", "is_running"),
    [
        ("now", None, True), ("an hour ago", None, False),
        ("now", "now", False), ("an hour ago", "an hour ago", False),
        ("now", "shortly before", False),  # copied
        ("now", "minutes before", True),
        ("now", "an hour ago", True),  # finished then, and resumed with another limit
    ],
)  # fmt: skip
def test_a_run_goes_on_while_its_log_is_newer_than_its_model(run_dir, log, model, is_running):
    written = {"metrics.jsonl": log} | ({} if model is None else {"config.json": model})
    for name, age in written.items():
        (run_dir / name).touch()
        os.utime(run_dir / name, (time.time() - AGES[age],) * 2)
    assert read_training_run(run_dir).is_running is is_running


def test_a_run_whose_folder_is_gone_has_no_rows(tmp_path):
    found = read_training_run(tmp_path / "gone")
    assert (found.rows, found.is_running) == ([], False)


@pytest.mark.parametrize("newest", ["now", "an hour ago"])
def test_before_the_first_row_a_run_goes_on_while_anything_is_written(tmp_path, newest):
    shards = tmp_path / "text"
    shards.mkdir()
    (tmp_path / ".elmokit-run").touch()
    (shards / "0.bin").touch()
    for path in (shards / "0.bin", shards, tmp_path / ".elmokit-run", tmp_path):
        os.utime(path, (time.time() - 7200,) * 2)
    os.utime(shards / "0.bin", (time.time() - AGES[newest],) * 2)
    assert read_training_run(tmp_path).is_running is (newest == "now")


def test_what_cannot_be_drawn_is_told(run_dir, tmp_path):
    with pytest.raises(InputError, match=r"\.svg"):
        plot_run(run_dir, tmp_path / "plot.txt")
    (run_dir / "metrics.jsonl").write_text("")
    with pytest.raises(InputError, match="nothing to draw"):
        plot_run(run_dir, tmp_path / "plot.png")


@pytest.mark.parametrize(
    ("name", "content"), [("run.json", '{"config": {"task": "ner"}}'), ("task.json", "{}")]
)
def test_a_task_run_is_told(run_dir, name, content):
    (run_dir / name).write_text(content)
    for refuse in (check_run_dir, lambda run: plot_run(run, run / "plot.png")):
        with pytest.raises(InputError, match=r"elmokit train.*pretrain.*finetune.*--task"):
            refuse(run_dir)
    assert not (run_dir / "plot.png").exists()


def test_what_is_no_run_is_told(tmp_path):
    with pytest.raises(InputError, match="training run"):
        check_run_dir(tmp_path)
    with pytest.raises(FileNotFoundError, match="missing"):
        check_run_dir(tmp_path / "missing")


def test_an_ngram_file_that_is_being_written_is_waited_for(run_dir):
    """`bench_ngram.py RUN > RUN/ngram.json` writes at its end."""
    (run_dir / "ngram.json").touch()
    assert read_training_run(run_dir).ngram is None


def test_perplexities_of_two_texts_are_not_compared(run_dir):
    report = {"mean": 300.5, "tokens": 90, "sentences": 9}
    (run_dir / "before.json").write_text(json.dumps({"in_domain": report, "out_of_domain": report}))
    after = {"in_domain": report, "out_of_domain": {**report, "tokens": 91}}
    (run_dir / "after.json").write_text(json.dumps(after))
    run = read_training_run(run_dir)
    assert run.before == {"in_domain": 300.5}
    assert run.after == {"in_domain": 300.5, "out_of_domain": 300.5}


def test_a_command_to_copy_quotes_its_path(tmp_path):
    (tmp_path / "my run").mkdir()
    (tmp_path / "my run" / "task.json").touch()
    with pytest.raises(InputError, match=r"--task '.*/my run'`"):
        check_run_dir(tmp_path / "my run")
