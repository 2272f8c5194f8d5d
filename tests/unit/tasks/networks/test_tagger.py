"""The CRF and its search; the highway LSTM, against a slow one written from the equations."""

import numpy as np
import pytest
import torch

from elmokit.tasks.networks.encoder import draw_weights
from elmokit.tasks.networks.tagger import CRF, AlternatingHighwayLSTM
from elmokit.tasks.tag_search import Marginals

from ....builders.task_models import padded_texts


def build(num_layers):
    encoder = AlternatingHighwayLSTM(4, (3,) * num_layers, dropout=0.0)
    generator = torch.Generator().manual_seed(3)
    draw_weights([encoder.double()], generator)
    with torch.no_grad():
        for layer in encoder.layers:
            layer.bias.add_(torch.randn(layer.bias.shape, generator=generator))
    return encoder


def slow_layer(layer, words):
    """Read a list of vectors, gate by gate, word by word."""
    size = layer.hidden_dim
    w = layer.input_weight.split(size)
    u = layer.recurrent_weight.split(size)
    b = layer.bias.split(size)
    h, c, outputs = torch.zeros(size).double(), torch.zeros(size).double(), []
    for x in words:
        i, f, o, r, g = (w[k] @ x + u[k] @ h + b[k] for k in range(5))
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = r.sigmoid() * o.sigmoid() * c.tanh() + (1 - r.sigmoid()) * (layer.carry_weight @ x)
        outputs.append(h)
    return outputs


def slow(encoder, words):
    for index, layer in enumerate(encoder.layers):
        words = slow_layer(layer, words) if index % 2 == 0 else slow_layer(layer, words[::-1])[::-1]
    return words


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_equals_the_equations_sentence_by_sentence(num_layers):
    """Layer by layer in the other direction, beginning left to right; padding has no effect."""
    texts, padded, mask = padded_texts(5, 0, 2, 1, dim=4)
    encoder = build(num_layers).eval()
    out = encoder(padded, mask)
    for row, words in enumerate(texts):
        for t, expected in enumerate(slow(encoder, list(words))):
            torch.testing.assert_close(out[row, t], expected)
        assert (out[row, len(words) :] == 0).all()


def test_the_log_likelihood_is_that_of_the_gold_tags_among_all_sequences():
    """By the probabilities of `tag_search`, which are checked by enumeration."""
    crf = CRF(3)
    crf.reset_parameters(torch.Generator().manual_seed(0))
    crf = crf.double()
    with torch.no_grad():
        crf.transitions.mul_(10)
    texts, logits, mask = padded_texts(4, 1, 0, 3, dim=3)
    tags = torch.tensor([[0, 1, 2, 0], [0, 9, 9, 9], [-5, 9, 9, 9], [1, 2, 2, -7]])
    transitions, allowed = crf.transitions.detach().numpy(), np.ones((5, 5), dtype=bool)
    for own, gold, log_prob in zip(texts, tags, crf(logits, tags, mask), strict=True):
        sequences = Marginals(own.numpy(), transitions=transitions, allowed=allowed)
        expected = sequences.of_part(0, gold[: len(own)].tolist()) if len(own) else 1
        assert log_prob.exp().item() == pytest.approx(expected, rel=1e-9)
