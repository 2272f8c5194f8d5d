"""Every preset and every recipe in the repository is a valid configuration that can be built."""

import re
import runpy
from pathlib import Path

import pytest

from elmokit.training.pretraining.presets import preset_names

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "recipes/pretrain").glob("*.toml"))
FINETUNING = sorted((ROOT / "recipes/finetune").glob("*.toml"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_recipes_parse(recipe):
    from elmokit.training.pretraining.presets import pretrain_config

    assert pretrain_config(recipe=recipe) != pretrain_config("toy")


@pytest.mark.parametrize("recipe", FINETUNING, ids=lambda path: path.stem)
def test_recipes_of_fine_tuning_parse(recipe):
    from elmokit.training.pretraining.presets import finetune_config

    assert finetune_config(recipe=recipe) != finetune_config()


@pytest.mark.parametrize("preset", preset_names())
def test_presets_parse_and_survive_a_round_trip(preset):
    from elmokit.config import from_dict, to_dict
    from elmokit.training.pretraining.presets import pretrain_config
    from elmokit.training.pretraining.pretrain import PretrainConfig

    config = pretrain_config(preset)
    assert from_dict(PretrainConfig, to_dict(config)) == config


@pytest.mark.parametrize("preset", ["toy", "tiny"])
def test_small_presets_build(preset):
    import torch

    from elmokit import BiLM
    from elmokit.training.pretraining.presets import pretrain_config

    model = BiLM(pretrain_config(preset).model)
    assert sum(p.numel() for p in model.parameters()) < 30_000_000
    assert torch.isfinite(next(model.parameters())).all()


WRONG = {
    "annotated_names": ("names.conll", "missing"),
    "build_wheels": ("plainfile",),
    "publish": ("results", "missing"),
    "word_index": ("missing", "-o", "words.parquet"),
    "../benchmarks/overlap": ("--corpus", "plainfile", "--task", "nli", "--data", "missing.jsonl"),
}  # fmt: skip
"""Arguments with a path that is not there, or (`plainfile`) not a folder."""


@pytest.mark.parametrize("name", WRONG)
def test_a_script_says_what_is_wrong_without_a_traceback(name, tmp_path, monkeypatch, capsys):
    if name == "word_index":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    script = ROOT / "recipes" / f"{name}.py"
    (tmp_path / "plainfile").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(script.parent)
    monkeypatch.setattr("sys.argv", [str(script), *WRONG[name]])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr()
    assert (end.value.code, printed.out) == (2, "")
    assert re.match(rf"{script.name}: error: .*\b(missing|plainfile)\b", printed.err)
    assert {path.name for path in tmp_path.iterdir()} <= {"plainfile", "runs"}


def test_a_misspelled_setting_is_refused(tmp_path):
    from elmokit.errors import ConfigError
    from elmokit.training.pretraining.presets import pretrain_config

    recipe = tmp_path / "mine.toml"
    recipe.write_text("[train]\nbatch_sise = 32\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.toml.*`train\.batch_sise`.*`batch_size`"):
        pretrain_config(recipe=recipe)
