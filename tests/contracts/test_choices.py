"""Names that users give are checked at run time: users' processes do not check annotations."""

from unittest import mock

import jaxtyping
import pytest

import elmokit
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.scalar_mix import LayerMixes, ScalarMix
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import ConfigError, InputError
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.training.pretraining.run_config import TrainConfig
from elmokit.vectors.training import VectorsConfig
from elmokit.weights.bilm_tf import write_bilm_tf

from ..builders.task_models import toy_model


@pytest.fixture(autouse=True)
def unchecked_annotations():
    with mock.patch.object(jaxtyping.config, "jaxtyping_disable", True):
        yield


@pytest.mark.parametrize(
    ("config", "given", "named"),
    [
        (CharCNNConfig, {"activation": "gelu"}, "relu, tanh, got 'gelu'"),
        (SoftmaxConfig, {"kind": "sample"}, "`kind` must be one of full, sampled, adaptive"),
        (TrainConfig, {"shuffle": "yes"}, "`shuffle` must be one of sentences, none"),
        (TrainConfig, {"precision": "fp8"}, "`precision` must be one of fp32, bf16"),
        (VectorsConfig, {"kind": "glove"}, "skipgram, cbow, fasttext"),
        (InputSettings, {"embeddings": "emlo"}, "`embeddings` must be one of elmo, static"),
        (InputSettings, {"positions": "middle"}, "`positions` must be one of input, output, both"),
        (TaskRunConfig, {"task": "ner", "units": "letters"}, "words, morphemes, characters"),
    ],
)
def test_a_setting_of_another_name_is_refused(config, given, named):
    with pytest.raises(ConfigError, match=named):
        config(**given)


def test_a_setting_that_may_be_open_may_be_none():
    assert InputSettings(positions=None, layer_norm=None).positions is None


@pytest.mark.parametrize("build", [lambda **more: ScalarMix(3, **more), elmokit.ELMo])
@pytest.mark.parametrize("norm", ["layer", "Token", "", 0, 1, ["token"]])
def test_an_unknown_norm_is_no_other_norm(build, norm):
    with pytest.raises(InputError, match="`layer_norm` must be one of none, token, batch"):
        build(layer_norm=norm)


def test_norms_may_be_true_or_false():
    assert ScalarMix(3, layer_norm=False).layer_norm == "none"
    assert ScalarMix(3, layer_norm=True).layer_norm == "token"


@pytest.mark.parametrize("layers", ["tpo", 0, "all"])
def test_unknown_layers_of_a_mixture_are_refused_when_it_is_built(layers):
    with pytest.raises(InputError, match="`layers` must be one of mix, average, top, layer0"):
        LayerMixes(3, layers=layers)


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "int4"])
def test_an_unknown_number_format_leaves_the_stored_model_as_it_is(tmp_path, dtype):
    model = toy_model()
    model.save(tmp_path / "model")
    expected = model.model_hash()
    for call in (
        lambda: model.save(tmp_path / "model", dtype=dtype),
        lambda: model.round_to(dtype),
    ):
        with pytest.raises(InputError, match="must be one of float32, float16, int8, int6"):
            call()
    assert elmokit.load_model(tmp_path / "model").model_hash() == expected


def test_an_embedder_says_what_it_takes():
    with pytest.raises(TypeError, match=r"Embedder\.load"):
        elmokit.Embedder("en")
    embedder = elmokit.Embedder(toy_model())
    for option in ({"layers": "tpo"}, {"state": "hot"}, {"batch_tokens": 0}):
        with pytest.raises(InputError):
            embedder.embed([["a"]], **option)
    with pytest.raises(InputError, match="of embed_batch is what its last call returned"):
        embedder.embed_batch([["a"]], state="warm")


def test_a_state_to_continue_from_is_never_ignored():
    embedder = elmokit.Embedder(toy_model())
    _, state = embedder.embed_batch([["a"], ["b"]])
    with pytest.raises(InputError, match='is for state="carry"'):
        embedder.stream_with_states([["a"]], state="reset", initial_state=state)
    with pytest.raises(InputError, match="must hold one row"):
        embedder.stream_with_states([["a"]], state="carry", initial_state=state)


def test_files_of_the_original_format_do_not_overwrite_each_other(tmp_path):
    model = toy_model()
    for files in (
        {"weights": tmp_path / "w.hdf5", "softmax": tmp_path / "." / "w.hdf5"},
        {"weights": tmp_path / "options.json"},
    ):
        with pytest.raises(InputError, match="must differ"):
            write_bilm_tf(model, tmp_path / "options.json", **files)
    assert list(tmp_path.iterdir()) == []
