"""Names that users give are checked at run time: users' processes do not check annotations."""

import pytest

import elmokit
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.scalar_mix import LayerMixes, ScalarMix
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import ConfigError, InputError
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.training.pretraining.run_config import TrainConfig
from elmokit.vectors.training import VectorsConfig
from elmokit.weights.bilm_tf import write_bilm_tf

from ..builders.task_models import toy_model

pytestmark = pytest.mark.usefixtures("without_type_checks")


@pytest.mark.parametrize(
    ("config", "given", "named"),
    [
        (CharCNNConfig, {"activation": "gelu"}, "relu, tanh, got 'gelu'"),
        (SoftmaxConfig, {"kind": "sample"}, "`kind` must be one of full, sampled, adaptive"),
        (TrainConfig, {"shuffle": "yes"}, "`shuffle` must be one of sentences, none"),
        (TrainConfig, {"precision": "fp8"}, "`precision` must be one of auto, fp32, bf16"),
        (VectorsConfig, {"kind": "glove"}, "skipgram, cbow, fasttext"),
        (InputSettings, {"embeddings": "emlo"}, "`embeddings` must be one of elmo, static"),
        (InputSettings, {"positions": "middle"}, "`positions` must be one of input, output, both"),
        (TaskRunConfig, {"task": "ner", "units": "letters"}, "words, morphemes, characters"),
    ],
)
def test_a_setting_of_another_name_is_refused(config, given, named):
    with pytest.raises(ConfigError, match=named):
        config(**given)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda _: ScalarMix(3, layer_norm="layer"), "none, token, batch"),
        (lambda model: elmokit.ELMo(model, layer_norm=["token"]), "none, token, batch"),
        (lambda _: LayerMixes(3, layers="tpo"), "mix, average, top, layer0"),
        (lambda model: model.round_to("fp16"), "float32, float16, int8, int6"),
        (lambda model: model.save("none", dtype="bf16"), "float32, float16, int8, int6"),
        (lambda model: write_bilm_tf(model, "a.json", weights="a.json"), "must differ"),
        (lambda model: write_bilm_tf(model, "a.json", "w", softmax="./w"), "must differ"),
    ],
)
def test_an_argument_of_another_name_is_refused_before_anything_is_written(
    call, named, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=named):
        call(toy_model())
    assert list(tmp_path.iterdir()) == []


def test_an_embedder_takes_models_and_ignores_no_state():
    with pytest.raises(TypeError, match=r"Embedder\.load"):
        elmokit.Embedder("en")
    embedder = elmokit.Embedder(toy_model())
    with pytest.raises(InputError, match="of embed_batch is what its last call returned"):
        embedder.embed_batch([["a"]], state="warm")
    _, state = embedder.embed_batch([["a"], ["b"]])
    with pytest.raises(InputError, match='is for state="carry"'):
        embedder.stream_with_states([["a"]], state="reset", initial_state=state)
    with pytest.raises(InputError, match="must hold one row"):
        embedder.stream_with_states([["a"]], state="carry", initial_state=state)
