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


def build(embeddings="static", *, positions="both", dropout=0.0, **settings) -> StaticInputs:
    settings = full_inputs(
        embeddings=embeddings, positions=positions, dropout=dropout, **settings
    )  # fmt: skip
    return StaticInputs(VECTORS, settings, WIDE).eval()


def rms(values: torch.Tensor) -> float:
    return float(values.detach().square().mean().sqrt())


def test_vectors_are_those_of_the_file_and_nothing_is_learned():
    static = build()
    np.testing.assert_array_equal(static(IDS)[0], [VALUES[0], [0, 0, 0], VALUES[1], VALUES[0]])
    assert [name for name, _ in static.named_parameters()] == ["weight"]
    assert not static.weight.requires_grad
    assert static.mix_dim == 0
    static.scale_to(0.25, [IDS])
    np.testing.assert_array_equal(static(IDS)[0, 0], VALUES[0])


class TestScale:
    def test_it_starts_so_that_words_with_a_vector_have_the_size(self):
        static = build(static_scale="learned")
        assert static.gammas.requires_grad
        static.scale_to(0.25, [IDS, IDS[:1, :2]])
        words = static(IDS)[IDS > 1]
        both = torch.cat([words, static(IDS[:1, :1])[0]])
        assert rms(both) == pytest.approx(0.25, rel=1e-6)
        np.testing.assert_array_equal(static(IDS)[IDS < 2].detach(), 0)

    @pytest.mark.parametrize("ids", [[], [torch.tensor([[0, 1]])], [torch.zeros(2, 0).long()]])
    def test_without_a_vector_it_stays(self, ids):
        static = build(static_scale="learned")
        static.scale_to(0.25, ids)
        assert static.gammas.tolist() == [1]

    def test_each_place_learns_its_own(self):
        static = build("static_output", static_scale="learned")
        static.scale_to(0.5, [IDS])
        with torch.no_grad():
            static.gammas[1] *= 2
        torch.testing.assert_close(static.mix(0, IDS), 2 * static(IDS))


class TestInThePlaceOfMixtures:
    @pytest.mark.parametrize(("positions", "dim"), [("input", 0), ("output", 3), ("both", 3)])
    def test_at_the_output_they_are_as_wide_as_they_are(self, positions, dim):
        static = build("static_output", positions=positions)
        assert static.mix_dim == dim
        if dim:
            torch.testing.assert_close(static.mix(0, IDS), static(IDS))

    def test_projected_they_are_as_wide_as_elmo_and_keep_their_size(self):
        static = build("static_projected", static_scale="learned")
        static.scale_to(0.25, [IDS])
        assert static.mix_dim == WIDE
        for index in (0, 1):
            mixed = static.mix(index, IDS)
            assert mixed.shape == (2, 4, WIDE)
            assert rms(mixed[IDS > 1]) == pytest.approx(0.25, rel=0.1)
            assert not mixed[IDS < 2].any()
        assert not torch.equal(static.mix(0, IDS), static.mix(1, IDS))

    @pytest.mark.parametrize("embeddings", ["static_output", "static_projected"])
    def test_they_have_the_dropout_of_mixtures(self, embeddings):
        torch.manual_seed(0)
        static = build(embeddings, dropout=0.5)
        whole, dropped = static.mix(0, IDS), static.train().mix(0, IDS)
        kept = dropped != 0
        assert kept.any()
        assert (dropped[~kept] == 0).all()
        assert not kept[IDS > 1].all()
        torch.testing.assert_close(dropped[kept], 2 * whole[kept])
