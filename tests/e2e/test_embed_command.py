"""`elmokit embed` as users type it, killed and resumed."""

import json
import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

from elmokit.embed.embedder import Embedder

from ..builders.embedding_models import random_sentences, toy_model

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("embed") / "model"
    toy_model(cell_dim=256, projection_dim=64).save(path)
    return path


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("embed") / "text.txt"
    lines = [" ".join(s) for s in random_sentences(4000, longest=60)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def command(*arguments):
    return [sys.executable, "-m", "elmokit", "embed", *map(str, arguments)]


def run(*arguments):
    return subprocess.run(command(*arguments), capture_output=True, text=True, encoding="utf-8")


def read(path):
    with h5py.File(path) as file:
        return {int(key): file[key][...] for key in file}


def test_json_report_and_vectors(model, tmp_path):
    (tmp_path / "t.txt").write_text("I sat by the bank .\n\n배 를 타고 갔다\n", encoding="utf-8")
    done = run(tmp_path / "t.txt", "-o", tmp_path / "o.h5", "--model", model, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["sentences"], report["words"]) == (3, 10)
    assert report["words_per_second"] > 0
    assert report["facts"]["state"] == "reset"
    expected = Embedder.load(model).embed(["I sat by the bank .", "", "배 를 타고 갔다"])
    got = read(tmp_path / "o.h5")
    assert sorted(got) == [0, 1, 2]
    for key, array in got.items():
        assert array.shape == expected[key].shape
        assert np.abs(array - expected[key]).max(initial=0) <= 2e-6


def test_plain_report_names_what_was_done(model, tmp_path):
    (tmp_path / "t.txt").write_text("one two\n")
    done = run(tmp_path / "t.txt", "-o", tmp_path / "o.npz", "-m", model, "--layers", "0")
    assert done.returncode == 0, done.stderr
    assert "sentences   1\nwords       2\n" in done.stdout
    assert "layers 0, 128 dimensions, float32, state reset, precision fp32" in done.stdout


def test_wrong_input_is_one_message_and_exit_code_2(model, tmp_path):
    (tmp_path / "t.txt").write_bytes(b"fine\n\xff\xfe\n")
    bad = run(tmp_path / "t.txt", "-o", tmp_path / "o.h5", "-m", model)
    assert bad.returncode == 2
    assert "t.txt, line 2: not UTF-8" in bad.stderr
    assert "Traceback" not in bad.stderr
    for options, message in (
        (["--shard", "4/4"], "0 <= i < N"),
        (["--shard", "one"], "--shard takes i/N"),
        (["--layers", "bottom"], "`layers` must be"),
        (["--precision", "int4"], "must be 'fp32' or 'bf16' or 'int8'"),
        (["--tokenizer", "nltk"], "nltk"),
    ):
        bad = run(tmp_path / "t.txt", "-o", tmp_path / "o2.h5", "-m", model, *options)
        assert bad.returncode == 2, bad.stderr
        assert message in bad.stderr


def test_killed_at_any_moment_and_resumed(model, text, tmp_path):
    whole = tmp_path / "whole.h5"
    assert run(text, "-o", whole, "-m", model, "--threads", "1").returncode == 0
    output = tmp_path / "out.h5"
    parts = tmp_path / "out.h5.parts"
    kills, seen = 0, 0
    for attempt in range(12):
        process = subprocess.Popen(
            command(text, "-o", output, "-m", model, "--resume", "--threads", "1"),
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None:
            # Before the first part, soon after each part, in the final writing.
            count = len(list(parts.glob("part-*.npz")))
            merging = any(parts.glob("whole*"))
            if count > seen or (attempt == 0 and parts.exists()) or (attempt < 9 and merging):
                time.sleep(0.01 * attempt)
                os.kill(process.pid, signal.SIGKILL)
                break
            time.sleep(0.002)
        if process.wait() == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
        seen = len(list(parts.glob("part-*.npz")))
        assert not output.exists()
    assert kills >= 3
    assert seen >= 1
    done = run(text, "-o", output, "-m", model, "--resume", "--threads", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sentences"] == 4000
    assert not parts.exists()
    expected, got = read(whole), read(output)
    assert sorted(got) == sorted(expected) == list(range(4000))
    for key, array in expected.items():
        np.testing.assert_array_equal(got[key], array)
