"""The CRF, by enumeration; the highway LSTM, against a slow one written from the equations."""

from itertools import pairwise, product

import pytest
import torch

from elmokit.tasks.networks.encoder import draw_weights
from elmokit.tasks.networks.tagger import CRF, AlternatingHighwayLSTM

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


def test_log_likelihood_equals_enumeration():
    crf = CRF(3)
    crf.reset_parameters(torch.Generator().manual_seed(0))
    with torch.no_grad():
        crf.transitions.mul_(10)
    crf = crf.double()

    def score_of(logits, sequence):
        parts = [logits[t, tag] for t, tag in enumerate(sequence)]
        parts += [crf.transitions[a, b] for a, b in pairwise(sequence)]
        return sum(parts, start=torch.zeros((), dtype=torch.float64))

    texts, logits, mask = padded_texts(4, 1, 0, 3, dim=3)
    tags = torch.tensor([[0, 1, 2, 0], [0, 9, 9, 9], [-5, 9, 9, 9], [1, 2, 2, -7]])
    for own, gold, log_prob in zip(texts, tags, crf(logits, tags, mask), strict=True):
        sequences = product(range(3), repeat=len(own))
        scores = torch.stack([score_of(own, sequence) for sequence in sequences])
        expected = score_of(own, gold[: len(own)].tolist()) - scores.logsumexp(dim=0)
        assert log_prob.item() == pytest.approx(expected.item(), abs=1e-12)
