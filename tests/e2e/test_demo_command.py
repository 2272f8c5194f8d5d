"""`elmokit demo`, on a little of its text."""

import json

import pytest

from elmokit.cli.commands import demo

from ..builders.command_line import elmokit

pytestmark = pytest.mark.e2e


def test_models_of_both_languages_show_their_neighbors(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "EPOCHS", 0.05)
    kept = tmp_path / "kept"
    shown = elmokit("demo", "--language", "en", "--language", "en", "-o", kept).stdout
    assert f"--model {kept / 'en'}" in shown
    assert "English: " in shown
    assert shown.count("nearest neighbor has the same sense: ") == 1
    assert (tmp_path / "kept/en/config.json").exists()
    (found,) = json.loads(elmokit("demo", "--language", "ko", "--json").stdout)["languages"]
    assert found["language"] == "Korean"
    assert found["model_dir"] is None
    assert found["perplexity"] > 1
    assert found["words"]
    assert set(found["words"]) <= set(demo._read_probes("ko"))
    assert all(0 <= share <= 1 for share in found["words"].values())
