"""Presets, recipes and single settings laid over each other."""

import pytest

from elmokit.config import to_dict
from elmokit.errors import ConfigError
from elmokit.training.pretraining.finetune import FinetuneConfig
from elmokit.training.pretraining.presets import (
    finetune_config,
    pretrain_config,
)


@pytest.fixture
def recipe(tmp_path):
    def write(text):
        path = tmp_path / "recipe.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_the_original_is_the_papers_model():
    config = pretrain_config("original")
    assert (config.model.lstm.cell_dim, config.model.lstm.projection_dim) == (4096, 512)
    assert config.model.char_cnn.num_filters == 2048
    assert config.model.char_cnn.num_highway == 2
    assert config.model.dropout == 0.1
    assert config.softmax.num_samples == 8192
    assert config.optimizer.name == "adagrad"
    assert (config.optimizer.learning_rate, config.optimizer.clip_norm) == (0.2, 10.0)
    assert config.optimizer.loss_scale == config.train.unroll_steps == 20
    assert config.schedule.kind == "constant"


def test_overrides_win_over_the_recipe_and_the_recipe_over_the_preset(recipe):
    path = recipe("[train]\nbatch_size = 7\nlog_steps = 3\n[model.lstm]\ncell_dim = 100\n")
    config = pretrain_config("toy", recipe=path, overrides=["train.batch_size=9"])
    toy = pretrain_config("toy")
    assert config.train.batch_size == 9
    assert config.train.log_steps == 3
    assert config.model.lstm.cell_dim == 100
    assert config.model.lstm.projection_dim == toy.model.lstm.projection_dim
    assert config.optimizer == toy.optimizer


def test_a_refused_value_names_the_key_and_where_it_stands(recipe):
    with pytest.raises(
        ConfigError, match=r"^--set train\.batch_size=0: `train\.batch_size`: .* 1 .* 0\."
    ):
        pretrain_config("toy", overrides=["train.batch_size=0"])
    path = recipe("[model.lstm]\ncell_dim = 0\n")
    with pytest.raises(ConfigError, match=r"/recipe\.toml: `model\.lstm\.cell_dim`: .* 1 .* 0\."):
        pretrain_config("toy", recipe=path, overrides=["train.batch_size=3"])


def test_an_unknown_key_of_a_setting_is_not_blamed_on_the_preset():
    with pytest.raises(
        ConfigError, match=r"^--set train\.batchsize=3: .*`train\.batchsize`.*`batch_size`"
    ):
        pretrain_config("toy", overrides=["train.batchsize=3"])
    with pytest.raises(ConfigError, match=r"^--set train\.batchsize=3: "):
        finetune_config(overrides=["train.batchsize=3"])


@pytest.mark.parametrize(
    ("override", "changed"),
    [
        ("train.seed=1", ("train", "seed", 1)),
        ("optimizer.weight_decay=0.1", ("optimizer", "weight_decay", 0.1)),
        ("validation.patience=2", ("validation", "patience", 2)),
        ("text.tokens_per_shard=100", ("text", "tokens_per_shard", 100)),
        ("vocab.min_count=3", ("vocab", "min_count", 3)),
        ("softmax.num_samples=5", ("softmax", "num_samples", 5)),
    ],
)
def test_one_setting_of_fine_tuning_leaves_the_others_of_its_table(override, changed):
    table, key, value = changed
    expected = to_dict(FinetuneConfig())
    expected[table][key] = value
    assert to_dict(finetune_config(overrides=[override])) == expected


class TestInput:
    def test_words_are_a_choice_of_the_recipe(self, recipe):
        path = recipe('preset = "toy"\ninput = "words"\n')
        assert pretrain_config(recipe=path) == pretrain_config("toy", input_kind="words")

    def test_a_char_cnn_has_no_place_in_a_model_of_words(self):
        with pytest.raises(
            ConfigError, match=r"^--set model\.char_cnn\.num_highway=2: `char_cnn` "
        ):
            pretrain_config("toy", input_kind="words", overrides=["model.char_cnn.num_highway=2"])
