"""When a job is still the same."""

import logging
from dataclasses import dataclass, field

import pytest

from elmokit.errors import ConfigError
from elmokit.jobs.identity import FIXED, Identity


@dataclass(frozen=True, kw_only=True)
class Model:
    width: int = 8
    depth: int = 2


@dataclass(frozen=True, kw_only=True)
class Train:
    seed: int = field(default=0, metadata=FIXED)
    tokenizer: str = field(default="simple", metadata=FIXED)
    log_steps: int = 10


@dataclass(frozen=True, kw_only=True)
class Config:
    model: Model = field(default_factory=Model, metadata=FIXED)
    train: Train = field(default_factory=Train)


INPUTS = {"corpus": ["a.txt"], "model": {"path": "base", "hash": "1f"}}


def compare(recorded, present):
    present.refuse_changes(recorded, "run.json", "Start anew.")


def test_the_same_job_passes_and_free_settings_may_change(caplog):
    recorded = Identity(Config(), INPUTS).record()
    moved = {**INPUTS, "model": {"path": "elsewhere", "hash": "1f"}}
    with caplog.at_level(logging.INFO, logger="elmokit"):
        compare(recorded, Identity(Config(train=Train(log_steps=3, tokenizer="auto")), moved))
    assert "train.log_steps was 10 and is now 3" in caplog.text


@pytest.mark.parametrize(
    ("config", "inputs", "key"),
    [
        (Config(train=Train(seed=7)), {}, "train.seed was 0 and is now 7"),
        (Config(model=Model(depth=3)), {}, "model.depth was 2 and is now 3"),
        (Config(), {"corpus": ["a.txt", "b.txt"]}, "corpus was "),
        (Config(), {"model": {"path": "base", "hash": "2e"}}, "model.hash was '1f'"),
    ],
)
def test_every_difference_is_named_with_file_and_cure(config, inputs, key):
    recorded = Identity(Config(), INPUTS).record()
    with pytest.raises(ConfigError) as caught:
        compare(recorded, Identity(config, INPUTS | inputs))
    assert str(caught.value).startswith("run.json: ")
    assert key in str(caught.value)
    assert str(caught.value).endswith("Start anew.")


def test_what_is_newer_than_the_record_has_its_default_or_is_not_compared():
    recorded = Identity(Config(), {}).record()
    del recorded["config"]["train"]["seed"]
    compare(recorded, Identity(Config(), INPUTS))
    with pytest.raises(ConfigError, match=r"train\.seed was 0 and is now 7"):
        compare(recorded, Identity(Config(train=Train(seed=7)), INPUTS))


def test_a_setting_that_there_is_no_longer_must_have_been_off():
    recorded = Identity(Config(), INPUTS).record()
    recorded["config"]["train"] |= {"grows": [], "share": 0.0}
    compare(recorded, Identity(Config(), INPUTS))
    recorded["config"]["train"]["share"] = 0.5
    with pytest.raises(ConfigError, match=r"run\.json: .*`train\.share`.*Start anew"):
        compare(recorded, Identity(Config(), INPUTS))
