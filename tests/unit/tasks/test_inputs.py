import numpy as np
import pytest
import torch

from elmokit.tasks.inputs import BatchMaker, InputsConfig, TokenInputs
from elmokit.tasks.static_vectors import StaticVectors
from elmokit.text.char_vocab import CharVocab

SENTENCES = [("by", "the", "river"), (), ("배", "by")]
STATIC = StaticVectors(["by", "river"], np.array([[1, 2], [3, 4]], dtype=np.float32))


def layers_of(sentences):
    random = np.random.default_rng(0)
    return [random.normal(size=(len(words), 3, 4)).astype(np.float16) for words in sentences]


def build(config, *, static=STATIC, num_mixes=1):
    inputs = TokenInputs(
        config, num_layers=3, layers_dim=4, max_characters=50, static=static, num_mixes=num_mixes
    )
    inputs.reset_parameters(torch.Generator().manual_seed(0))
    return inputs.eval(), BatchMaker(config, CharVocab(), static)


def test_parts_stand_side_by_side_and_padding_is_zero():
    inputs, maker = build(InputsConfig())
    layers = layers_of(SENTENCES)
    batch = maker.make(SENTENCES, layers)
    out = inputs(batch)
    assert out.shape == (3, 3, 2 + 128 + 4)
    assert inputs.output_dim == 134
    np.testing.assert_array_equal(out[0, :, :2].detach(), [[1, 2], [0, 0], [3, 4]])
    mean = layers[0].astype(np.float32).mean(axis=1)  # fresh weights: the plain mean
    np.testing.assert_allclose(out[0, :, 130:].detach(), mean, atol=1e-6)
    assert not out[~batch.mask].any()


def test_a_row_does_not_depend_on_its_batch():
    inputs, maker = build(InputsConfig())
    layers = layers_of(SENTENCES)
    together = inputs(maker.make(SENTENCES, layers))
    alone = inputs(maker.make(SENTENCES[2:], layers[2:]))
    torch.testing.assert_close(together[2, :2], alone[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize(("arm", "layer"), [("layer0", 0), ("top", 2)])
def test_one_layer_arms_read_that_layer_alone(arm, layer):
    inputs, maker = build(InputsConfig(embeddings=arm, characters=False), static=None)
    layers = layers_of(SENTENCES)
    out = inputs(maker.make(SENTENCES, layers))
    np.testing.assert_allclose(out[0].detach(), layers[0][:, layer].astype(np.float32), atol=1e-6)
    assert float(inputs.penalty().detach()) == 0


def test_only_the_mix_learns_weights():
    for arm, learned in (("elmo", True), ("random", True), ("average", False), ("top", False)):
        inputs, _ = build(InputsConfig(embeddings=arm), num_mixes=2)
        assert [mix.mix_weights.requires_grad for mix in inputs.mixes] == [learned, learned]
        assert all(mix.gamma.requires_grad for mix in inputs.mixes)


def test_the_penalty_is_lambda_times_the_squared_weights_of_all_places():
    inputs, _ = build(InputsConfig(layer_l2=0.5), num_mixes=2)
    with torch.no_grad():
        for mix in inputs.mixes:
            mix.mix_weights.copy_(torch.tensor([1.0, 0.0, 2.0]))
    assert float(inputs.penalty().detach()) == pytest.approx(0.5 * 2 * 5)


def test_static_vectors_are_not_trained():
    inputs, _ = build(InputsConfig(embeddings="static"))
    assert not inputs.static.weight.requires_grad


def test_nothing_to_read_is_refused():
    with pytest.raises(ValueError, match="leaves a word nothing to be read"):
        build(InputsConfig(embeddings="none", characters=False), static=None)
