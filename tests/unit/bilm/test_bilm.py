"""The whole network; its layers and states equal the original's in `tests/parity`."""

import pytest
import torch

from elmokit.bilm.bilm import BiLM, BiLMConfig, BiLMState
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig

from ...builders.embedding_models import toy_model

SENTENCES = [["I", "sat", "by", "the", "bank"], ["눈", "이", "온다"], [], ["word" * 30, "🙂"]]


def test_padded_positions_are_zero_in_every_layer():
    model = toy_model()
    out = model(model.encode(SENTENCES))
    assert out.mask.sum(dim=1).tolist() == [7, 5, 2, 4]
    assert not out.layers[:, ~out.mask].any()
    assert (out.layers[:, out.mask].abs().sum(dim=-1) > 0).all()


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
def test_parameters_are_as_many_as_those_of_the_released_models(
    cell_dim, projection_dim, num_highway, published
):
    config = BiLMConfig(
        char_cnn=CharCNNConfig(num_highway=num_highway),
        lstm=LSTMConfig(cell_dim=cell_dim, projection_dim=projection_dim),
    )
    with torch.device("meta"):
        model = BiLM(config)
    assert (model.num_layers, model.output_dim) == (3, 2 * projection_dim)
    padded_row = 16
    assert sum(p.numel() for p in model.parameters()) == published + padded_row


def test_gradients_reach_every_parameter_but_the_padded_row():
    model = toy_model(num_layers=3)
    model(model.encode(SENTENCES)).layers.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    assert not model.token_encoder.char_embedding.weight.grad[0].any()
    assert model.token_encoder.char_embedding.weight.grad[261].any()


@pytest.mark.parametrize(
    ("words", "ids", "error"),
    [
        (False, [["a"]], TypeError),
        (False, torch.ones(1, 2, 16), TypeError),
        (True, torch.ones(1, 2, dtype=torch.bool), TypeError),
        (False, torch.ones(1, 2, 15, dtype=torch.int64), ValueError),
        (False, torch.ones(2, 16, dtype=torch.int64), ValueError),
        (True, torch.ones(1, 2, 16, dtype=torch.int64), ValueError),
    ],
)
def test_what_are_no_ids_of_the_model_is_refused(words, ids, error):
    with pytest.raises(error, match=r"`word_ids` .*\(B, T\)" if words else r"`char_ids` .* 16\)"):
        toy_model(words=words).check_inputs(ids)


def test_a_state_of_fewer_rows_is_refused():
    model = toy_model()
    state, ids = BiLMState.zeros(model.config.lstm, 3), model.encode(SENTENCES)
    with pytest.raises(ValueError, match=r"`state` has 3 rows.* 4\."):
        model(ids, state=state)
