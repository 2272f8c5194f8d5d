"""The CRF, by enumeration; the highway LSTM, against a slow one written from the equations."""

from itertools import pairwise, product

import pytest
import torch

from elmokit.tasks.networks.encoder import draw_weights
from elmokit.tasks.networks.tagger import CRF, AlternatingHighwayLSTM

from ....builders.task_models import LENGTHS, MASK, padded_inputs


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
    encoder, x = build(num_layers).eval(), padded_inputs()
    out = encoder(x, MASK)
    for row, length in enumerate(LENGTHS):
        for t, expected in enumerate(slow(encoder, list(x[row, :length]))):
            torch.testing.assert_close(out[row, t], expected)
        assert (out[row, length:] == 0).all()


CRF_LENGTHS = [4, 1, 0, 3]
NUM_TAGS = 3
TAGS = torch.tensor([[0, 1, 2, 0], [0, 9, 9, 9], [-5, 9, 9, 9], [1, 2, 2, -7]])


def score_of(crf, logits, sequence):
    parts = [logits[t, tag] for t, tag in enumerate(sequence)]
    parts += [crf.transitions[a, b] for a, b in pairwise(sequence)]
    return sum(parts, start=torch.zeros((), dtype=torch.float64))


def test_log_likelihood_equals_enumeration():
    crf = CRF(NUM_TAGS)
    crf.reset_parameters(torch.Generator().manual_seed(0))
    with torch.no_grad():
        crf.transitions.mul_(10)
    crf = crf.double()
    logits = torch.randn(4, 4, NUM_TAGS, dtype=torch.float64)
    mask = torch.arange(4).unsqueeze(0) < torch.tensor(CRF_LENGTHS).unsqueeze(1)
    logits[~mask] = torch.nan
    log_probs = crf(logits, TAGS, mask)
    for row, length in enumerate(CRF_LENGTHS):
        sequences = product(range(NUM_TAGS), repeat=length)
        scores = [score_of(crf, logits[row], sequence) for sequence in sequences]
        gold = score_of(crf, logits[row], TAGS[row, :length].tolist())
        expected = gold - torch.logsumexp(torch.stack(scores), dim=0)
        assert log_probs[row].item() == pytest.approx(expected.item(), abs=1e-12)
