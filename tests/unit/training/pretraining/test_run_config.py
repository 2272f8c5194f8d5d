"""Settings that cannot work are refused by name, in every table of settings of a training."""

import pytest

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig, SoftmaxConfig
from elmokit.tasks.runs.run_dir import TaskTrainConfig as TaskTrain
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.pretraining.finetune import FinetuneConfig
from elmokit.training.pretraining.run_config import TrainConfig, ValidationConfig
from elmokit.training.schedules import ScheduleConfig

NAN = float("nan")
REFUSED = [
    (TrainConfig, "batch_size", 0), (TrainConfig, "unroll_steps", 0), (TrainConfig, "log_steps", 0),
    (TrainConfig, "checkpoint_steps", 0), (TrainConfig, "num_epochs", 0.0),
    (TrainConfig, "num_epochs", NAN), (TrainConfig, "checkpoint_seconds", -1.0),
    (TrainConfig, "ema_decay", 0.0), (TrainConfig, "ema_decay", 1.0), (TrainConfig, "seed", -1),
    (TrainConfig, "zero_state_share", 1.1), 
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
    (TaskTrain, "bilm_learning_rate", 0.0), (TaskTrain, "label_share", 0.0),
    (TaskTrain, "label_share", 1.5), (TaskTrain, "lowercase_share", -0.1),
    (TaskTrain, "seed", 2**32),
    (TrainConfig, "batch_growth", ((0.5, 4),)), (TrainConfig, "batch_growth", ((1.0, 800),)),
    (LSTMConfig, "num_layers", 10**9), (LSTMConfig, "projection_dim", 5000),
    (LSTMConfig, "cell_clip", NAN), (LSTMConfig, "projection_clip", -1.0),
    (CharCNNConfig, "filters", ()), (CharCNNConfig, "filters", ((0, 4),)),
    (CharCNNConfig, "filters", ((1, 2**17),)), (CharCNNConfig, "num_highway", -1),
    (SoftmaxConfig, "num_samples", 0), (SoftmaxConfig, "cutoffs", (9, 3)),
    (BiLMConfig, "dropout", 1.0), (CharVocabConfig, "max_characters", 2),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "value"), REFUSED)
def test_settings_that_cannot_work_are_refused(kind, name, value):
    with pytest.raises(ValueError, match=f"`{name}` "):
        kind(**{name: value})
