from dataclasses import replace

import pytest
import torch

from elmokit.bilm.bilm import BiLM, BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig

CONFIG = BiLMConfig(
    char_cnn=CharCNNConfig(embedding_dim=4, filters=((1, 4), (2, 8), (3, 16)), num_highway=1),
    lstm=LSTMConfig(
        num_layers=3, cell_dim=12, projection_dim=6, cell_clip=1.0, projection_clip=0.5
    ),
)
WORD_CONFIG = replace(CONFIG, char_cnn=None, num_words=50)
SENTENCES = [
    ["I", "sat", "by", "the", "bank", "of", "the", "river"],
    ["눈", "이", "온다"],
    [],
    ["one"],
    ["a", "long", "wordwordwordwordwordwordwordwordwordwordwordwordword", "🙂"],
]


def build(config=CONFIG, *, gain=2.0):
    """A model whose clips act and whose layers differ clearly."""
    model = BiLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "_layers." in name:
                parameter.mul_(gain)
        if config.num_words is not None:
            generator = torch.Generator().manual_seed(1)
            model.token_encoder.embedding.weight[1:].normal_(generator=generator)
    return model


@pytest.fixture(scope="module")
def model():
    return build()


def ids_of(model, sentences=SENTENCES):
    return torch.from_numpy(model.char_vocab.encode(sentences))


@torch.no_grad()
def layers_of(model, ids, **arguments):
    return model(ids, **arguments).layers


class TestOutput:
    def test_shapes_and_the_token_layer_twice(self, model):
        ids = ids_of(model)
        out = model(ids)
        assert out.layers.shape == (4, 5, 10, 12)
        assert (model.num_layers, model.output_dim) == (4, 12)
        assert out.mask.sum(dim=1).tolist() == [10, 5, 2, 3, 6]
        assert out.state.hidden.shape == (3, 2, 5, 6)
        assert out.state.cell.shape == (3, 2, 5, 12)
        tokens = model.encode_tokens(ids[0])
        torch.testing.assert_close(out.layers[0, 0], torch.cat((tokens, tokens), dim=1))

    def test_padded_positions_are_zero_in_every_layer(self, model):
        out = model(ids_of(model))
        assert not out.layers[:, ~out.mask].any()
        assert (out.layers[:, out.mask].abs().sum(dim=-1) > 0).all()


class TestDirections:
    @pytest.mark.parametrize("changed", [1, 4, 8])
    def test_no_layer_of_a_direction_sees_what_it_has_not_read(self, model, changed):
        words = list(SENTENCES[0])
        before = layers_of(model, ids_of(model, [words]))[:, 0]
        words[changed - 1] = "other"
        after = layers_of(model, ids_of(model, [words]))[:, 0]
        dim = model.config.lstm.projection_dim
        forward = (before - after)[1:, :, :dim].abs().amax(dim=2)  # (N, T)
        backward = (before - after)[1:, :, dim:].abs().amax(dim=2)
        assert not forward[:, :changed].any()
        assert not backward[:, changed + 1 :].any()
        assert (forward[:, changed:] > 0).all()
        assert (backward[:, : changed + 1] > 0).all()


class TestState:
    def test_each_direction_goes_on_from_its_own_end(self):
        """Forward: first part, then second. Backward: second part, then first."""
        model = build(WORD_CONFIG)
        ids = torch.arange(1, 41).unsqueeze(0)
        with torch.no_grad():
            whole, first, second = model(ids), model(ids[:, :20]), model(ids[:, 20:])
            after_first = model(ids[:, 20:], state=first.state)
            after_second = model(ids[:, :20], state=second.state)
        dim = WORD_CONFIG.lstm.projection_dim
        ahead = torch.cat((first.layers, after_first.layers), dim=2)[..., :dim]
        back = torch.cat((after_second.layers, second.layers), dim=2)[..., dim:]
        torch.testing.assert_close(ahead, whole.layers[..., :dim], atol=1e-6, rtol=0)
        torch.testing.assert_close(back, whole.layers[..., dim:], atol=1e-6, rtol=0)
        for part in ("hidden", "cell"):
            ours = getattr(whole.state, part)
            torch.testing.assert_close(ours[:, 0], getattr(after_first.state, part)[:, 0])
            torch.testing.assert_close(ours[:, 1], getattr(after_second.state, part)[:, 1])


class TestParameters:
    @pytest.mark.parametrize(
        ("cell_dim", "projection_dim", "num_highway", "published"),
        [
            (1024, 128, 1, 13_593_296),
            (2048, 256, 1, 28_027_728),
            (4096, 512, 2, 93_600_848),
            (1024, 128, 2, 21_986_000),
        ],
        ids=["small", "medium", "original", "Korean of 2019"],
    )
    def test_counts_of_the_released_models(self, cell_dim, projection_dim, num_highway, published):
        config = BiLMConfig(
            char_cnn=CharCNNConfig(num_highway=num_highway),
            lstm=LSTMConfig(cell_dim=cell_dim, projection_dim=projection_dim),
        )
        with torch.device("meta"):
            model = BiLM(config)
        padded_row = 16
        assert sum(p.numel() for p in model.parameters()) == published + padded_row

    def test_gradients_reach_every_parameter(self):
        model = build(gain=1.0)
        model(ids_of(model)).layers.square().sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().sum() > 0, name
