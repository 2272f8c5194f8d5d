import numpy as np
import pytest
import torch

from elmokit.tasks.inputs.token_inputs import START_RMS, BatchMaker, TokenInputs
from elmokit.text.char_vocab import CharVocab
from elmokit.vectors.static_vectors import StaticVectors

from ....builders.task_models import full_inputs, toy_model

SENTENCES = [("by", "the", "river"), (), ("배", "by")]
STATIC = StaticVectors(["by", "river"], np.array([[1, 2], [3, 4]], dtype=np.float32))


def layers_of(sentences):
    random = np.random.default_rng(0)
    return [random.normal(size=(len(words), 3, 4)).astype(np.float16) for words in sentences]


def build(*, static=STATIC, **settings):
    settings = full_inputs(**settings)
    inputs = TokenInputs(settings, num_layers=3, layers_dim=4, max_characters=50, static=static)
    inputs.reset_parameters(torch.Generator().manual_seed(0))
    return inputs.eval(), BatchMaker(settings, CharVocab(), static)


def test_parts_stand_side_by_side_and_padding_is_zero():
    inputs, maker = build()
    layers = layers_of(SENTENCES)
    batch = maker.make(SENTENCES, layers)
    out = inputs(batch)
    assert out.shape == (3, 3, 2 + 128 + 4)
    assert inputs.output_dim == 134
    np.testing.assert_array_equal(out[0, :, :2].detach(), [[1, 2], [0, 0], [3, 4]])
    mean = layers[0].astype(np.float32).mean(axis=1)  # fresh weights: the plain mean
    np.testing.assert_allclose(out[0, :, 130:].detach(), mean, atol=1e-6)
    assert not out[~batch.mask].any()


@pytest.mark.parametrize("layer_norm", ["none", "token"])
def test_mixtures_start_as_large_as_word_vectors(layer_norm):
    inputs, maker = build(positions="both", dropout=0.5, layer_norm=layer_norm)
    batch = maker.make(SENTENCES, [9 * layers for layers in layers_of(SENTENCES)])
    inputs.train().set_scales([batch, batch])
    for position in ("input", "output"):
        real = inputs.eval().mix(batch, position)[batch.mask]
        assert float(real.detach().square().mean().sqrt()) == pytest.approx(START_RMS, rel=1e-4)


def test_without_words_or_values_mixtures_stay_as_they_are():
    inputs, maker = build()
    nothing = [np.zeros((len(words), 3, 4), dtype=np.float16) for words in SENTENCES]
    for sentences, layers in (([()], layers_of([()])), (SENTENCES, nothing)):
        inputs.set_scales([maker.make(sentences, layers)])
        assert float(inputs.mixes.scalar_mixes[0].gamma.detach()) == 1


@pytest.mark.parametrize(("condition", "layer"), [("layer0", 0), ("top", 2)])
def test_one_layer_arms_read_that_layer_alone(condition, layer):
    inputs, maker = build(embeddings=condition, characters=False, static=None)
    layers = layers_of(SENTENCES)
    out = inputs(maker.make(SENTENCES, layers))
    np.testing.assert_allclose(out[0].detach(), layers[0][:, layer].astype(np.float32), atol=1e-6)
    assert float(inputs.penalty().detach()) == 0


@pytest.mark.parametrize(
    ("positions", "at_input", "at_output"),
    [("input", True, False), ("output", False, True), ("both", True, True)],
)
def test_a_mixture_stands_where_it_is_asked_for(positions, at_input, at_output):
    inputs, maker = build(positions=positions)
    batch = maker.make(SENTENCES, layers_of(SENTENCES))
    encoded = torch.ones(3, 3, 5)
    joined = inputs.join_output(encoded, batch)
    assert inputs(batch).shape[2] == inputs.output_dim == 130 + 4 * at_input
    assert joined.shape[2] == 5 + inputs.output_mix_dim == 5 + 4 * at_output
    assert (joined[..., :5][batch.mask] == 1).all()
    assert not joined[~batch.mask].any()


def test_the_positions_have_weights_of_their_own():
    inputs, maker = build(positions="both")
    batch = maker.make(SENTENCES, layers_of(SENTENCES))
    with torch.no_grad():
        inputs.mixes.scalar_mixes[1].mix_weights.copy_(torch.tensor([0.0, 50.0, 0.0]))
    np.testing.assert_allclose(inputs.mix(batch, "output").detach(), batch.layers[1], atol=1e-6)
    mean = batch.layers.mean(dim=0)
    torch.testing.assert_close(inputs.mix(batch, "input").detach(), mean)


def test_layers_are_normalized_as_asked_for_over_real_words_only():
    layers = layers_of(SENTENCES)
    real = np.concatenate(layers).astype(np.float32)  # (words, L, 2D)
    expected = {
        "token": (real - real.mean(axis=2, keepdims=True)) / real.std(axis=2, keepdims=True),
        "batch": (real - real.mean(axis=(0, 2), keepdims=True))
        / real.std(axis=(0, 2), keepdims=True),
    }
    for norm, values in expected.items():
        inputs, maker = build(layer_norm=norm, characters=False, static=None)
        batch = maker.make(SENTENCES, layers)
        out = inputs(batch)[batch.mask].detach()
        np.testing.assert_allclose(out, values.mean(axis=1), atol=1e-5)


def test_only_the_mix_learns_weights():
    for condition, learned in (
        ("elmo", True),
        ("random", True),
        ("average", False),
        ("top", False),
    ):
        inputs, _ = build(embeddings=condition, positions="both")
        mixes = list(inputs.mixes.scalar_mixes)
        assert [mix.mix_weights.requires_grad for mix in mixes] == [learned, learned]
        assert all(mix.gamma.requires_grad for mix in mixes)


def test_the_penalty_is_lambda_times_the_squared_weights_of_all_positions():
    inputs, _ = build(layer_l2=0.5, positions="both")
    with torch.no_grad():
        for mix in inputs.mixes.scalar_mixes:
            mix.mix_weights.copy_(torch.tensor([1.0, 0.0, 2.0]))
    assert float(inputs.penalty().detach()) == pytest.approx(0.5 * 2 * 5)


@pytest.mark.parametrize("embeddings", ["static", "elmo", "static_projected"])
def test_static_vectors_with_a_scale_start_as_large_as_mixtures(embeddings):
    inputs, maker = build(embeddings=embeddings, characters=False, static_scale="learned")
    layers = layers_of(SENTENCES) if embeddings == "elmo" else None
    batch = maker.make(SENTENCES, layers)
    inputs.set_scales([batch])
    words = inputs(batch)[batch.static_ids > 1][:, : STATIC.dim]
    assert float(words.detach().square().mean().sqrt()) == pytest.approx(START_RMS, rel=1e-4)


@pytest.mark.parametrize("positions", ["input", "output", "both"])
def test_projected_static_vectors_are_as_wide_as_elmo_everywhere(positions):
    elmo, _ = build(positions=positions)
    inputs, maker = build(embeddings="static_projected", positions=positions)
    assert (inputs.output_dim, inputs.output_mix_dim) == (elmo.output_dim, elmo.output_mix_dim)
    batch = maker.make(SENTENCES, None)
    assert inputs(batch).shape[2] == inputs.output_dim
    joined = inputs.join_output(torch.ones(3, 3, 5), batch)
    assert joined.shape[2] == 5 + inputs.output_mix_dim
    assert not joined[~batch.mask].any()
    assert inputs.penalty() == 0


def test_static_vectors_may_be_read_at_the_output_too():
    inputs, maker = build(embeddings="static_output", positions="both", characters=False)
    batch = maker.make(SENTENCES, None)
    assert (inputs.output_dim, inputs.output_mix_dim) == (2, 2)
    joined = inputs.join_output(torch.zeros(3, 3, 5), batch)
    torch.testing.assert_close(joined[..., 5:], inputs(batch))


@pytest.mark.parametrize(("condition", "positions"), [("none", "input"), ("elmo", "output")])
def test_nothing_to_read_is_refused(condition, positions):
    with pytest.raises(ValueError, match=r"embeddings=.*positions=.*characters=false"):
        build(embeddings=condition, positions=positions, characters=False, static=None)


class TestALearningBiLM:
    def make(self, sentences):
        bilm = toy_model()
        maker = BatchMaker(full_inputs(), bilm.char_vocab, None, bilm=bilm)
        return bilm, maker.make(sentences, None)

    def test_gives_the_layers_that_it_gives_alone_without_boundaries(self):
        bilm, batch = self.make(SENTENCES)
        for row, words in enumerate(SENTENCES):
            alone = bilm(bilm.encode([words])).layers[:, 0, 1:-1]
            torch.testing.assert_close(batch.layers[:, row, : len(words)], alone)
            assert not batch.layers[:, row, len(words) :].any()

    def test_gets_gradients_in_every_part(self):
        bilm, batch = self.make(SENTENCES)
        batch.layers.square().sum().backward()
        assert all(float(p.grad.abs().sum()) > 0 for p in bilm.parameters())

    def test_takes_a_batch_without_words(self):
        _, batch = self.make([(), ()])
        assert batch.layers.shape[1:3] == (2, 0)


@pytest.mark.parametrize("num_words", [1, 30, 300, 600])
def test_characters_of_many_words_are_those_of_each_alone(num_words):
    inputs, maker = build(embeddings="none", static=None)
    words = tuple("강a" * (1 + number % 13) + str(number) for number in range(num_words))
    together = inputs(maker.make([words], None))[0]
    plain = inputs.characters(torch.from_numpy(CharVocab().encode_words(words).astype(np.int64)))
    torch.testing.assert_close(together, plain, rtol=0, atol=1e-6)
    alone = inputs(maker.make([words[-1:]], None))[0]
    torch.testing.assert_close(together[-1:], alone, rtol=0, atol=1e-6)
