"""What a task model reads of each word, and the settings of it: what is open is the task's own."""

from typing import get_args

import numpy as np
import pytest
import torch

from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.token_inputs import START_RMS, TokenInputs
from elmokit.tasks.registry import EmbeddingKind, find_task
from elmokit.text.char_vocab import CharVocab
from elmokit.vectors.static_vectors import StaticVectors

from ....builders.task_models import full_inputs

SENTENCES = [("by", "the", "river"), (), ("배", "by")]
RANDOM = np.random.default_rng(0)
LAYERS = [RANDOM.normal(size=(len(words), 3, 4)).astype(np.float16) for words in SENTENCES]
STATIC = StaticVectors(["by", "river"], np.array([[1, 2], [3, 4]], dtype=np.float32))


def build(*, static=STATIC, **settings):
    settings = full_inputs(**settings)
    inputs = TokenInputs(settings, CharVocab(), num_layers=3, layers_dim=4, static=static)
    inputs.reset_parameters(torch.Generator().manual_seed(0))
    return inputs.eval()


def rms(values):
    return float(values.detach().square().mean().sqrt())


def test_parts_stand_side_by_side_and_padding_is_zero():
    inputs = build()
    batch = inputs.make_batch(SENTENCES, LAYERS)
    out = inputs(batch).detach()
    assert out.shape == (3, 3, 2 + 128 + 4) == (3, 3, inputs.output_dim)
    np.testing.assert_array_equal(out[0, :, :2], [[1, 2], [0, 0], [3, 4]])
    # fresh weights: the plain mean
    np.testing.assert_allclose(out[0, :, 130:], LAYERS[0].mean(axis=1, dtype="f4"), atol=1e-6)
    assert not out[~batch.mask].any()


@pytest.mark.parametrize(
    ("embeddings", "layer_norm", "position"),
    [
        ("elmo", "none", "output"),
        ("elmo", "token", "input"),
        ("static_output", "none", "output"),
        ("static_projected", "none", "input"),
    ],
)
def test_mixtures_and_scaled_vectors_start_as_large_as_word_vectors(
    embeddings, layer_norm, position
):
    inputs = build(
        embeddings=embeddings, positions="both", dropout=0.5, layer_norm=layer_norm,
        static_scale="learned", characters=False,
    )  # fmt: skip
    layers = [9 * layers for layers in LAYERS] if embeddings == "elmo" else None
    batch = inputs.make_batch(SENTENCES, layers)
    inputs.train().set_scales([batch, batch])
    inputs.eval()
    words = inputs(batch)[batch.static_ids > 1][:, : STATIC.dim]
    assert rms(words) == pytest.approx(START_RMS, rel=1e-4)
    if embeddings == "elmo":
        assert rms(inputs.mix(batch, position)[batch.mask]) == pytest.approx(START_RMS, rel=1e-4)


@pytest.mark.parametrize(
    ("condition", "learned", "shares"),
    [
        ("elmo", True, [1 / 3, 1 / 3, 1 / 3]),
        ("random", True, [1 / 3, 1 / 3, 1 / 3]),
        ("average", False, [1 / 3, 1 / 3, 1 / 3]),
        ("layer0", False, [1, 0, 0]),
        ("top", False, [0, 0, 1]),
    ],
)
def test_conditions_read_their_layers_and_only_mixtures_learn_weights(condition, learned, shares):
    inputs = build(
        embeddings=condition, characters=False, static=None, positions="both", layer_l2=0.5
    )  # fmt: skip
    out = inputs(inputs.make_batch(SENTENCES, LAYERS)).detach()
    np.testing.assert_allclose(out[0], np.average(LAYERS[0], 1, shares), atol=1e-6)
    mixes = list(inputs.mixes.scalar_mixes)
    assert [mix.mix_weights.requires_grad for mix in mixes] == [learned, learned]
    assert all(mix.gamma.requires_grad for mix in mixes)
    with torch.no_grad():
        for mix in mixes if learned else ():
            mix.mix_weights.copy_(torch.tensor([1.0, 0.0, 2.0]))
        assert float(inputs.penalty()) == pytest.approx(0.5 * 2 * 5 if learned else 0)


@pytest.mark.parametrize("num_words", [1, 30, 300, 600])
def test_characters_of_many_words_are_those_of_each_alone(num_words):
    inputs = build(embeddings="none", static=None)
    words = tuple("강a" * (1 + number % 13) + str(number) for number in range(num_words))
    together = inputs(inputs.make_batch([words], None))[0]
    plain = inputs.characters(torch.from_numpy(CharVocab().encode_words(words).astype(np.int64)))
    torch.testing.assert_close(together, plain, rtol=0, atol=1e-6)
    alone = inputs(inputs.make_batch([words[-1:]], None))[0]
    torch.testing.assert_close(together[-1:], alone, rtol=0, atol=1e-6)


PAPER = {
    "pos": full_inputs(characters=True, dropout=0.0, layer_l2=0.001),
    "ner": full_inputs(characters=True, dropout=0.0, layer_l2=0.1),
    "srl": full_inputs(characters=False, layer_l2=0.001),
    "sentiment": full_inputs(positions="both", characters=False, layer_l2=0.001),
    "nli": full_inputs(
        positions="both", characters=False, dropout=0.0, layer_l2=0.001, layer_norm="token"
    ),
    "qa": full_inputs(positions="both", characters=True, layer_l2=0.0),
}
"""Peters et al. 2018, appendix A and table 3; where dropout is 0, the encoder drops its inputs."""


@pytest.mark.parametrize("name", PAPER)
def test_what_is_open_is_as_in_the_paper(name):
    assert InputSettings().resolved(find_task(name).paper_inputs, with_static=True) == PAPER[name]


@pytest.mark.parametrize(
    ("embeddings", "with_static", "state", "scale"),
    [
        ("elmo", True, "warm", "learned"),
        ("elmo", False, "warm", "given"),
        ("static", True, "reset", "learned"),
        ("static_projected", True, "reset", "learned"),
        ("none", True, "reset", "given"),
    ],
)
def test_what_has_no_effect_does_not_distinguish_runs(embeddings, with_static, state, scale):
    given = InputSettings(embeddings=embeddings, state="warm", static_scale="learned")
    resolved = given.resolved(with_static=with_static)
    assert (resolved.state, resolved.static_scale) == (state, scale)


@pytest.mark.parametrize(
    ("given", "with_static", "expected"),
    [
        ({}, False, False),
        ({"embeddings": "none"}, False, True),
        ({"embeddings": "static"}, True, False),
        ({"positions": "output"}, False, True),
        ({"positions": "output"}, True, False),
        ({"embeddings": "none", "characters": False}, False, False),
    ],
)
def test_characters_are_read_where_nothing_else_would_be(given, with_static, expected):
    paper = find_task("srl").paper_inputs  # without characters
    assert InputSettings(**given).resolved(paper, with_static=with_static).characters == expected


def test_the_guide_has_every_condition(repository_dir):
    guide = (repository_dir / "docs/guides/tasks.md").read_text(encoding="utf-8")
    table = guide.partition("| `--embeddings` |")[2].partition("\n\n")[0]
    assert [name for name in get_args(EmbeddingKind) if f"`{name}`" not in table] == []
