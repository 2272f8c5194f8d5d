"""`examples/elmo.py`, all of ELMo in one file, against the library: a second answer."""

import json
import runpy
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import elmokit
from elmokit.bilm.softmax import Candidates, SampledSoftmax

from ..builders.command_line import elmokit as run_elmokit
from ..builders.training_models import write_text

ROOT = Path(__file__).parents[2]
DATA = ROOT / "src" / "elmokit" / "data"
SENTENCES = {
    "en": ["They", "sat", "on", "the", "bank", "of", "the", "river", "."],
    "ko": ["배", "를", "타", "고", "강", "을", "건너", "었", "다", "."],
}


@pytest.fixture(scope="module")
def one_file():
    return SimpleNamespace(**runpy.run_path(str(ROOT / "examples" / "elmo.py")))


def test_it_fits_into_350_lines():
    assert len((ROOT / "examples" / "elmo.py").read_text(encoding="utf-8").splitlines()) <= 350


@pytest.mark.parametrize("name", SENTENCES)
def test_the_packaged_models_give_the_same_vectors(one_file, name):
    words = SENTENCES[name]
    layers = one_file.load(DATA / "models" / name).layers(words)
    expected = elmokit.Embedder.load(name).embed([words])[0]
    assert layers.shape == expected.shape
    np.testing.assert_allclose(layers.numpy(), expected, rtol=0, atol=1e-5)


def second_draw(model):
    """Return the softmax with which `pretrain` begins: it goes on with the generator."""
    generator = torch.Generator().manual_seed(0)
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            is_normal = any(part in name for part in ("highways", "projection.weight", "softmax"))
            draw = torch.nn.init.normal_ if is_normal else torch.nn.init.uniform_
            draw(torch.empty_like(weight), generator=generator)
    return torch.nn.init.normal_(
        torch.empty_like(model.softmax.weight),
        std=model.softmax.weight.shape[1] ** -0.5,
        generator=generator,
    )


def test_training_has_the_same_losses_as_pretrain(one_file, tmp_path):
    lines = (DATA / "demo" / "en.txt").read_text(encoding="utf-8").splitlines()
    sentences = [line.split() for line in lines[:400]]
    text = write_text(tmp_path / "text.txt", sentences)
    held_out = write_text(tmp_path / "held_out.txt", [line.split() for line in lines[400:450]])
    settings = {
        "train.shuffle": "none", "train.log_steps": "1", "schedule.kind": "constant",
        "train.precision": "fp32",  # `auto` may choose bf16
        "schedule.warmup_share": "0", "text.tokenizer.name": "whitespace",
    }  # fmt: skip
    run_elmokit(
        "pretrain", text, "--valid", held_out, "-o", tmp_path / "run",
        "--preset", "toy", "--tokens", 20 * 160,
        *(word for name, value in settings.items() for word in ("--set", f"{name}={value}")),
    )  # fmt: skip
    rows = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    expected = [row["loss"] for row in map(json.loads, rows) if "loss" in row]
    vocab = (tmp_path / "run" / "vocab.txt").read_text(encoding="utf-8").splitlines()

    assert one_file.vocabulary(sentences, 5000) == vocab
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))["bilm"]
    model = one_file.BiLM(config, len(vocab))
    one_file.initialize(model)
    with torch.no_grad():
        model.softmax.weight.copy_(second_draw(model))
    losses = list(one_file.train(model, vocab, sentences, num_steps=20))
    np.testing.assert_allclose(losses, expected[:20], rtol=1e-5)


def test_the_sampled_loss_is_that_of_the_library(one_file):
    generator = torch.Generator().manual_seed(1)
    softmax = SampledSoftmax(200, 8, num_samples=20)
    softmax.reset_parameters(generator)
    torch.nn.init.normal_(softmax.bias, generator=generator)
    hidden = torch.randn(30, 8, generator=generator)
    targets = torch.randint(200, (30,), generator=generator)
    samples, tries = one_file.draw_samples(20, 200)
    assert len(set(samples.tolist())) == 20 <= tries
    loss = one_file.sampled_loss(softmax, hidden, targets, samples, tries)
    expected = softmax.sampled_nll(hidden, targets + 1, Candidates(samples, tries)).mean()
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0)


def test_frequent_words_are_sampled_more_often(one_file):
    draws = [one_file.draw_samples(5, 1000)[0] for _ in range(200)]
    share = np.mean([(samples < 100).float().mean() for samples in draws])
    assert 0.55 < share < 0.72  # ln(101) / ln(1001) = 0.67, less a little: all five differ


def test_a_cut_sentence_goes_on_in_its_row(one_file):
    first, second = islice(one_file.windows([["a", "b", "c", "d"], ["e"]], 2, 3), 2)
    assert first[0] == [("<S>", "a", "</S>", "d"), ("a", "b", "d", "c"), ("b", "c", "c", "b")]
    assert second[0] == [("c", "d", "b", "a"), ("d", "</S>", "a", "<S>"), ("<S>", "e", "</S>", "e")]
    assert first[1][0] == ("<S>", "e", "</S>", "e")
