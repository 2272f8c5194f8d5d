"""Presets, recipes and single settings laid over each other."""

import pytest

from elmokit.errors import ConfigError
from elmokit.training.pretraining.presets import pretrain_config


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


def test_overrides_win_over_the_recipe_and_the_recipe_over_the_preset(write):
    content = "[train]\nbatch_size = 7\nlog_steps = 3\n[model.lstm]\ncell_dim = 100\n"
    path = write(content, name="recipe.toml")
    config = pretrain_config("toy", recipe=path, overrides=["train.batch_size=9"])
    toy = pretrain_config("toy")
    assert config.train.batch_size == 9
    assert config.train.log_steps == 3
    assert config.model.lstm.cell_dim == 100
    assert config.model.lstm.projection_dim == toy.model.lstm.projection_dim
    assert config.optimizer == toy.optimizer


def test_a_refused_value_names_the_key_and_where_it_stands(write):
    message = r"preset toy with --set train\.batch_size=0: `train`: `batch_size` .* 1 .* 0\."
    with pytest.raises(ConfigError, match=message):
        pretrain_config("toy", overrides=["train.batch_size=0"])
    path = write("[model.lstm]\ncell_dim = 0\n", name="recipe.toml")
    with pytest.raises(ConfigError, match=r"/recipe\.toml: `model\.lstm`: `cell_dim` .* 1 .* 0\."):
        pretrain_config("toy", recipe=path, overrides=["train.batch_size=3"])


def test_words_are_a_choice_of_the_recipe(write):
    path = write('preset = "toy"\ninput = "words"\n', name="recipe.toml")
    assert pretrain_config(recipe=path) == pretrain_config("toy", input_kind="words")
