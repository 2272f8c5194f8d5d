import math
import re
from dataclasses import replace

import pytest
import torch

from elmokit.bilm.bilm import BiLM, BiLMConfig, BiLMState
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.errors import ConfigError

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


def random_state(model, num_rows):
    generator = torch.Generator().manual_seed(5)
    zeros = BiLMState.zeros(model.config.lstm, num_rows)
    return BiLMState(
        *(0.3 * torch.randn(part.shape, generator=generator) for part in (zeros.hidden, zeros.cell))
    )


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

    def test_no_sentences(self, model):
        assert model(torch.zeros(0, 4, 50, dtype=torch.int64)).layers.shape == (4, 0, 4, 12)


class TestSameSentenceSameVector:
    """Alone or in company, whatever the order and the padding."""

    def alone(self, model):
        return [layers_of(model, ids_of(model, [sentence]))[:, 0] for sentence in SENTENCES]

    def assert_same(self, layers, index, alone):
        length = len(SENTENCES[index]) + 2
        difference = (layers[:, :length] - alone[index]).abs().max().item()
        assert difference <= 2e-6

    @pytest.mark.parametrize("padding", [1, 30])
    def test_padding_does_not_change_real_positions(self, model, padding):
        alone = self.alone(model)
        for index, sentence in enumerate(SENTENCES):
            ids = torch.nn.functional.pad(ids_of(model, [sentence]), (0, 0, 0, padding))
            self.assert_same(layers_of(model, ids)[:, 0], index, alone)

    @pytest.mark.parametrize("copies", [1, 9])
    def test_batch_and_order_do_not_change_a_sentence(self, model, copies):
        alone = self.alone(model)
        numbers = list(range(len(SENTENCES))) * copies
        order = torch.randperm(len(numbers), generator=torch.Generator().manual_seed(copies))
        batch = [numbers[i] for i in order.tolist()]
        layers = layers_of(model, ids_of(model, [SENTENCES[i] for i in batch]))
        for row, index in enumerate(batch):
            self.assert_same(layers[:, row], index, alone)

    def test_what_came_before_does_not_change_a_sentence(self, model):
        """The model keeps nothing between calls."""
        ids = ids_of(model, SENTENCES[:1])
        before = layers_of(model, ids)
        layers_of(model, ids_of(model))
        assert torch.equal(layers_of(model, ids), before)


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

    def test_backward_is_forward_over_the_reversed_sentence(self):
        """With the parameters of one direction in both, mirror images are equal."""
        model = build(WORD_CONFIG)
        model.backward_layers.load_state_dict(model.forward_layers.state_dict())
        ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [7, 7, 8, 2, 0, 0, 0, 0]])
        mirrored = torch.tensor([[6, 2, 9, 5, 1, 4, 1, 3], [2, 8, 7, 7, 0, 0, 0, 0]])
        layers, mirror = layers_of(model, ids), layers_of(model, mirrored)
        dim = WORD_CONFIG.lstm.projection_dim
        for row, length in enumerate((8, 4)):
            forward = layers[:, row, :length, :dim]
            backward = mirror[:, row, :length, dim:].flip(1)
            torch.testing.assert_close(forward, backward, atol=1e-6, rtol=0)


class TestSkipConnections:
    def test_from_the_second_layer_on_the_input_is_added(self):
        model = build()
        x = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))
        state = random_state(model, 2).direction("forward")
        outputs, _ = model.run_direction("forward", x, state=state)
        below = x
        for number, layer in enumerate(model.forward_layers):
            plain, _ = layer(below, (state[0][number], state[1][number]))
            expected = plain + below if number else plain
            torch.testing.assert_close(outputs[number], expected, atol=1e-6, rtol=0)
            below = outputs[number]

    def test_the_state_is_without_them_and_within_the_clip(self, model):
        out = model(ids_of(model))
        clip = model.config.lstm.projection_clip
        assert out.layers[2:].abs().max() > clip
        assert out.state.hidden.abs().max() <= clip + 1e-6

    def test_without_them_outputs_stay_within_the_clip(self):
        config = replace(CONFIG, lstm=replace(CONFIG.lstm, skip_connections=False))
        model = build(config)
        out = model(ids_of(model))
        assert out.layers[1:].abs().max() <= CONFIG.lstm.projection_clip + 1e-6
        ends = out.layers[1:, torch.arange(5), out.mask.sum(dim=1) - 1, :6]
        torch.testing.assert_close(out.state.hidden[:, 0], ends)


class TestState:
    def test_a_state_changes_both_directions(self, model):
        ids = ids_of(model)
        difference = layers_of(model, ids) - layers_of(model, ids, state=random_state(model, 5))
        assert not difference[0].any()
        assert (difference[1:, :, 0].abs().amax(dim=-1) > 0).all()

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

    def test_a_larger_state_is_taken_from_its_first_rows(self, model):
        ids, state = ids_of(model), random_state(model, 9)
        out = model(ids, state=state)
        assert out.state.num_rows == 5
        assert torch.equal(out.layers, model(ids, state=state.rows(slice(0, 5))).layers)

    def test_too_few_rows_are_refused(self, model):
        with pytest.raises(ValueError, match=r"`state` .*\b3 .*\b5\b"):
            model(ids_of(model), state=random_state(model, 3))

    def test_rows_and_directions(self, model):
        state = random_state(model, 4)
        again = BiLMState.from_directions(state.direction("forward"), state.direction("backward"))
        assert torch.equal(again.hidden, state.hidden)
        assert torch.equal(again.cell, state.cell)
        picked = state.rows(torch.tensor([2, 0]))
        assert torch.equal(picked.cell[:, :, 1], state.cell[:, :, 0])


class TestErrors:
    @pytest.mark.parametrize(
        ("config", "shape"),
        [
            (CONFIG, (2, 3)),
            (CONFIG, (2, 3, 40)),
            (CONFIG, (2, 3, 4, 50)),
            (WORD_CONFIG, (2, 3, 50)),
        ],
    )
    def test_wrong_shapes_of_ids(self, config, shape):
        # the shape checks of the tests would refuse some of them before
        check = getattr(BiLM.check_inputs, "__wrapped__", BiLM.check_inputs)
        expected = (
            r"`word_ids`.*\(B, T\)" if config.char_cnn is None else r"`char_ids`.*\(B, T, 50\)"
        )
        with pytest.raises(ValueError, match=rf"{expected}.*{re.escape(str(shape))}"):
            check(build(config), torch.ones(shape, dtype=torch.int64))

    @pytest.mark.parametrize(
        ("settings", "name"),
        [
            ({"num_words": 5}, "`char_cnn` .*`num_words`"),
            ({"char_cnn": None}, "`char_cnn` .*`num_words`"),
            ({"char_cnn": None, "num_words": -1}, "`num_words`.* 0 "),
            ({"dropout": 1.0}, "`dropout`.*1.0"),
            ({"dropout": -0.1}, "`dropout`.*-0.1"),
            ({"dropout": math.nan}, "`dropout`.*nan"),
        ],
    )
    def test_impossible_settings(self, settings, name):
        with pytest.raises(ConfigError, match=name):
            BiLMConfig(**settings)

    def test_padding_between_real_tokens(self, model):
        ids = ids_of(model)
        ids[0, 3] = 0
        with pytest.raises(ValueError, match="sentence 0"):
            model(ids)


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

    def test_fresh_weights_depend_on_the_generator_alone(self):
        first, second = BiLM(CONFIG), BiLM(CONFIG)
        second.reset_parameters(torch.Generator().manual_seed(1))
        changed = [
            name
            for name, parameter in first.named_parameters()
            if not torch.equal(parameter, second.get_parameter(name))
        ]
        assert all(name.endswith("weight") for name in changed)
        assert len(changed) == sum(name.endswith("weight") for name in first.state_dict())
        second.reset_parameters(torch.Generator().manual_seed(0))
        assert all(torch.equal(p, second.get_parameter(n)) for n, p in first.named_parameters())
