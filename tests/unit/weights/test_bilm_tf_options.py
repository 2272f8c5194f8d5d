import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest

from elmokit.bilm.bilm import BiLMConfig
from elmokit.errors import FormatError
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.weights.bilm_tf_options import ORIGINAL_OPTIONS, options_of, parse_options
from elmokit.weights.model_dir import PretrainedBiLM

from ...parity.oracles import case

TINY = {
    "lstm": {"dim": 4, "projection_dim": 2},
    "char_cnn": {"activation": "tanh", "filters": [[1, 3]], "embedding": {"dim": 2}},
}


def parse(data):
    return parse_options(data, source=Path("o.json"), shapes={"char_embed": (9, 5)})


def changed(key, value):
    """The options with one dotted key set, or taken away where the value is `...`."""
    data = copy.deepcopy(TINY)
    *parents, last = key.split(".")
    table = data[parents[0]] if parents else data
    table.pop(last, None)
    if value is not ...:
        table[last] = value
    return data


def test_the_released_options_are_the_defaults_of_the_package():
    raw = CharVocabConfig(normalization="none", truncation="byte")
    released = json.loads(case("original_seeded").options_path.read_text())
    assert parse(released) == BiLMConfig(char_vocab=raw)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("lstm", ..., "lstm.*missing"), ("lstm.dim", ..., "dim.*missing"),
        ("lstm.projection_dim", "512", r"projection_dim.*'512'"),
        ("lstm.n_layers", 10**9, r"num_layers.* 100,"), ("lstm.dim", 10**400, "cell_dim"),
        ("lstm.cell_clip", float("nan"), "cell_clip"),
        ("lstm.use_skip_connections", "false", "use_skip_connections.*'false'"),
        ("char_cnn.activation", "gelu", "activation.*relu.*tanh.*gelu"),
        ("char_cnn.activation", ..., "activation.*missing"),
        ("char_cnn.filters", [[0, 2]], "filters"), ("bidirectional", False, "unidirectional"),
    ],
)  # fmt: skip
def test_impossible_options_are_named(key, value, message):
    with pytest.raises(FormatError, match=rf"o\.json: .*{message}"):
        parse(changed(key, value))


def written_of(data, config):
    return options_of(PretrainedBiLM(config, training={ORIGINAL_OPTIONS: data}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lstm.cell_clip", None), ("char_cnn.embedding", ...), ("lstm.unheard_of", {"a": [1]}),
    ],
)  # fmt: skip
def test_what_was_read_is_written_again(key, value):
    data = changed(key, value)
    config = replace(parse(TINY), char_cnn=parse(data).char_cnn)
    assert json.dumps(written_of(data, config)) == json.dumps(data)


def test_what_no_longer_holds_is_replaced_and_the_rest_stays():
    data, config = changed("n_train_tokens", 10), parse(TINY)
    config = replace(config, lstm=replace(config.lstm, cell_clip=2.0))
    options = written_of(data, config)
    assert options["lstm"]["cell_clip"] == 2.0
    assert options["n_train_tokens"] == 10
    assert parse(options) == config
