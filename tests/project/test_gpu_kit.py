"""The GPU kit from end to end, on the CPU with a toy."""

import json
import sys
import tarfile

import pytest
import torch

from elmokit.bilm.lstm_config import LSTMConfig
from elmokit.bilm.lstmp import LSTMP
from elmokit.corpus.shards import ShardSet, write_shards
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.model_dir import load_model

from ..builders.embedding_models import random_sentences
from ..builders.training_models import write_text

TOY = {
    "model.lstm.cell_dim": 16, "model.lstm.projection_dim": 8, "softmax.num_samples": 4,
    "train.batch_size": 4, "train.precision": "fp32", "validation.num_times": 1,
}  # fmt: skip


@pytest.fixture
def kit(program):
    return program("gpu_kit")


@pytest.fixture
def prepared(tmp_path):
    sentences = random_sentences(300)
    write_shards(sentences, tmp_path / "shards", tokens_per_shard=500)
    write_text(tmp_path / "held.txt", sentences[:20])
    words = sorted({word for sentence in sentences for word in sentence})
    WordVocab(["<S>", "</S>", "<UNK>", *words]).write(tmp_path / "vocab.txt")
    return tmp_path


def test_shards_come_back_as_far_as_they_fit(kit, prepared):
    words = kit.pack(prepared / "shards", prepared / "kit.tar", 10**9)
    kit.unpack(prepared / "kit.tar", prepared / "again")
    for path in (prepared / "shards").iterdir():
        if path.name != "manifest.json":
            assert (prepared / "again" / path.name).read_bytes() == path.read_bytes()
    assert kit.pack(prepared / "shards", prepared / "small.tar", 1500) < words
    kit.unpack(prepared / "small.tar", prepared / "small")
    assert 0 < ShardSet.open(prepared / "small").num_words < words


def test_it_measures_trains_and_packs(kit, prepared, monkeypatch, capsys):
    kit.pack(prepared / "shards", prepared / "kit.tar", 10**9)
    settings = [f"--set={key}={value}" for key, value in TOY.items()]
    arguments = [
        "run", prepared / "kit.tar", "--valid", prepared / "held.txt", "--vocab",
        prepared / "vocab.txt", "-o", prepared / "out", "--device", "cpu", "--minutes", 0.15,
        "--reserve-minutes", 0.0, "--trial-seconds", 1, "--ways", "loop", "cudnn", *settings,
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["gpu_kit.py", *map(str, arguments), "--least", "1e9"])
    assert kit.main() == 3
    assert "task runs" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["gpu_kit.py", *map(str, arguments), "--least", "0"])
    assert kit.main() == 0
    rates = json.loads((prepared / "out/rates.json").read_text())
    # on a busy machine a second may be one update, whose rate is 0
    assert all(isinstance(rates[way], float) for way in ("loop", "cudnn"))
    with tarfile.open(prepared / "out/model.tar") as archive:
        archive.extractall(prepared, filter="data")
    assert load_model(prepared / "model").config.lstm.cell_dim == 16


def test_the_ready_made_lstm_is_the_layer(kit):
    layer = LSTMP(6, LSTMConfig(cell_dim=8, projection_dim=4, cell_clip=None, projection_clip=None))
    layer.reset_parameters(torch.Generator().manual_seed(0))
    x = torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(1))
    state = (torch.full((3, 4), 0.1), torch.full((3, 8), -0.2))
    outputs, final = kit.run_cudnn(layer, x, state)
    expected, expected_final = layer(x, state)
    torch.testing.assert_close((outputs, *final), (expected, *expected_final))
