"""A small biLM, inputs, and settings with nothing left open, for the tests of `elmokit.tasks`."""

from pathlib import Path

import torch
from torch.nn.utils.rnn import pad_sequence

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task
from elmokit.tasks.runs.training import TaskTrainConfig
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.weights.model_dir import PretrainedBiLM


def toy_model(*, seed: int = 3, **settings) -> PretrainedBiLM:
    """A model with random weights."""
    config = BiLMConfig(
        char_vocab=CharVocabConfig(max_characters=16),
        char_cnn=CharCNNConfig(embedding_dim=4, filters=((1, 4), (2, 8)), num_highway=1),
        lstm=LSTMConfig(num_layers=2, cell_dim=24, projection_dim=8),
    )
    model = PretrainedBiLM(config, **settings)
    model.reset_parameters(torch.Generator().manual_seed(seed))
    return model.eval()


def saved_toy_model(tmp_path_factory) -> Path:
    """The directory of a `toy_model`."""
    path = tmp_path_factory.mktemp("model") / "bilm"
    toy_model().save(path)
    return path


def padded_texts(*lengths, dim, seed=0):
    """Texts as random vectors, these as a batch, and its mask; padding must never be seen."""
    generator = torch.Generator().manual_seed(seed)
    texts = [torch.randn(n, dim, generator=generator, dtype=torch.float64) for n in lengths]
    padded = pad_sequence(texts, batch_first=True, padding_value=torch.nan)
    return texts, padded, ~padded.isnan().any(dim=2)


TABLES = {
    "sentiment": "text\tlabel\nby the river\tgood\nI sat\tbad\n",
    "nli": "premise\thypothesis\tlabel\nI sat\tby\tneutral\nthe bank\tI\tentailment\n",
}


def trained_classifier(task: str, folder: Path, model: Path, **given) -> TaskRun:
    """A run of `sentiment` or `nli`, in the folder of this name, that saw two examples once."""
    table = folder / f"{task}.tsv"
    table.write_text(TABLES[task], encoding="utf-8")
    config = TaskRunConfig(
        task=task, hidden_dims=(8,), train=TaskTrainConfig(epochs=1, batch_size=2)
    )
    cache = folder / "layers"
    train_task(config, table, table, folder / task, model=str(model), cache_dir=cache, **given)
    return TaskRun.load(folder / task)


ENTITIES = "Minji B-PER\nKim I-PER\nsat O\n\nby O\nBank B-LOC\n\n"
"""A file of named entities."""


def full_inputs(**given) -> InputSettings:
    """Settings of a new task, but for what is given."""
    return InputSettings(**given).resolved(with_static=True)
