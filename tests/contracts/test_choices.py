"""Settings and arguments that cannot work are refused by name, and so at run time.

Users' processes do not check annotations.
"""

from functools import partial

import pytest

import elmokit
from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig, SoftmaxConfig
from elmokit.bilm.scalar_mix import LayerMixes, ScalarMix
from elmokit.errors import InputError
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.tasks.runs.run_dir import TaskTrainConfig as TaskTrain
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.pretraining.finetune import FinetuneConfig
from elmokit.training.pretraining.run_config import TrainConfig, ValidationConfig
from elmokit.training.schedules import ScheduleConfig
from elmokit.vectors.training import VectorsConfig
from elmokit.weights.bilm_tf import write_bilm_tf

from ..builders.task_models import toy_model

pytestmark = pytest.mark.usefixtures("without_type_checks")

NAN = float("nan")
REFUSED = [
    (TrainConfig, "batch_size", 0), (TrainConfig, "unroll_steps", 0), (TrainConfig, "log_steps", 0),
    (TrainConfig, "checkpoint_steps", 0), (TrainConfig, "num_epochs", 0.0),
    (TrainConfig, "num_epochs", NAN), (TrainConfig, "checkpoint_seconds", -1.0),
    (TrainConfig, "ema_decay", 0.0), (TrainConfig, "ema_decay", 1.0), (TrainConfig, "seed", -1),
    (TrainConfig, "zero_state_share", 1.1), (TrainConfig, "shuffle", "yes"),
    (TrainConfig, "precision", "fp8"),
    (ValidationConfig, "num_times", 0), (ValidationConfig, "max_sentences", 0),
    (ValidationConfig, "patience", 0), (FinetuneConfig, "softmax_first_share", 1.1),
    (OptimizerConfig, "name", "sgd"), (OptimizerConfig, "learning_rate", 0.0),
    (OptimizerConfig, "loss_scale", 0.0), (OptimizerConfig, "clip_norm", 0.0),
    (OptimizerConfig, "betas", (1.0, 0.9)), (OptimizerConfig, "betas", (0.9, -0.1)),
    (OptimizerConfig, "weight_decay", -0.1), (OptimizerConfig, "initial_accumulator", -1.0),
    (ScheduleConfig, "kind", "square"), (ScheduleConfig, "warmup_share", 1.0),
    (ScheduleConfig, "warmup_share", -0.1), (ScheduleConfig, "final_factor", 1.5),
    (TaskTrain, "epochs", 0), (TaskTrain, "batch_size", 0), (TaskTrain, "patience", 0),
    (TaskTrain, "learning_rate", 0.0), (TaskTrain, "clip_norm", NAN),
    (TaskTrain, "label_share", 0.0), (TaskTrain, "label_share", 1.5), (TaskTrain, "seed", 2**32),
    (partial(TaskRunConfig, task="ner"), "units", "letters"),
    (InputSettings, "embeddings", "emlo"), (InputSettings, "positions", "middle"),
    (LSTMConfig, "num_layers", 10**9), (LSTMConfig, "projection_dim", 5000),
    (LSTMConfig, "cell_clip", NAN), (LSTMConfig, "projection_clip", -1.0),
    (CharCNNConfig, "filters", ()), (CharCNNConfig, "filters", ((0, 4),)),
    (CharCNNConfig, "filters", ((1, 2**17),)), (CharCNNConfig, "num_highway", -1),
    (CharCNNConfig, "activation", "gelu"), (SoftmaxConfig, "kind", "sample"),
    (SoftmaxConfig, "num_samples", 0), (SoftmaxConfig, "cutoffs", (9, 3)),
    (BiLMConfig, "dropout", 1.0), (CharVocabConfig, "max_characters", 2),
    (VectorsConfig, "kind", "glove"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "value"), REFUSED)
def test_settings_that_cannot_work_are_refused(kind, name, value):
    with pytest.raises(ValueError, match=f"`{name}` "):
        kind(**{name: value})


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
        embedder.stream([["a"]], state="reset", initial_state=state)
    with pytest.raises(InputError, match="must hold one row"):
        embedder.stream([["a"]], state="carry", initial_state=state)
