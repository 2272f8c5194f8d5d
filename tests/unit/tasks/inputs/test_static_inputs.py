"""Static vectors: their learned scale, and what they are in the place of mixtures."""

import numpy as np
import pytest
import torch

from elmokit.tasks.inputs.static_inputs import StaticInputs
from elmokit.vectors.static_vectors import StaticVectors

from ....builders.task_models import full_inputs

VALUES = np.array([[1, 2, 2], [-4, 0, 4]], dtype=np.float32)
VECTORS = StaticVectors(["by", "river"], VALUES)
IDS = torch.tensor([[2, 1, 3, 2], [2, 0, 0, 0]])
WIDE = 4096


def build(embeddings="static", *, dropout=0.0, **settings) -> StaticInputs:
    settings = full_inputs(embeddings=embeddings, positions="both", dropout=dropout, **settings)
    return StaticInputs(VECTORS, settings, WIDE).eval()


def test_vectors_are_those_of_the_file_and_nothing_is_learned():
    static = build()
    static.scale_to(0.25, [IDS])  # it has no scale
    np.testing.assert_array_equal(static(IDS)[0], [VALUES[0], [0, 0, 0], VALUES[1], VALUES[0]])
    assert [name for name, _ in static.named_parameters()] == ["weight"]
    assert not static.weight.requires_grad
    assert static.mix_dim == 0


def test_a_scale_starts_so_that_words_with_a_vector_have_the_size_and_each_place_has_its_own():
    static = build("static_output", static_scale="learned")
    assert static.gammas.requires_grad
    static.scale_to(0.5, [IDS, IDS[:1, :2]])
    both = torch.cat([static(IDS)[IDS > 1], static(IDS[:1, :1])[0]])
    assert float(both.detach().square().mean().sqrt()) == pytest.approx(0.5, rel=1e-6)
    np.testing.assert_array_equal(static(IDS)[IDS < 2].detach(), 0)
    with torch.no_grad():
        static.gammas[1] *= 2
    torch.testing.assert_close(static.mix(0, IDS), 2 * static(IDS))


def test_projected_they_are_as_wide_as_elmo_and_keep_their_size():
    static = build("static_projected", static_scale="learned")
    static.scale_to(0.25, [IDS])
    assert static.mix_dim == WIDE
    for index in (0, 1):
        mixed = static.mix(index, IDS)
        assert mixed.shape == (2, 4, WIDE)
        size = float(mixed[IDS > 1].detach().square().mean().sqrt())
        assert size == pytest.approx(0.25, rel=0.1)
        assert not mixed[IDS < 2].any()
    assert not torch.equal(static.mix(0, IDS), static.mix(1, IDS))


@pytest.mark.parametrize("embeddings", ["static_output", "static_projected"])
def test_they_have_the_dropout_of_mixtures(embeddings):
    torch.manual_seed(0)
    static = build(embeddings, dropout=0.5)
    whole, dropped = static.mix(0, IDS), static.train().mix(0, IDS)
    kept = dropped != 0
    assert kept.any()
    assert (dropped[~kept] == 0).all()
    assert not kept[IDS > 1].all()
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])
