"""The layers of the networks, against loops over the words of each text; padding has no effect."""

import numpy as np
import pytest
import torch

from elmokit.tasks.classification import NliTask
from elmokit.tasks.networks import attention
from elmokit.tasks.networks.classifier import ESIM
from elmokit.tasks.networks.encoder import SentenceEncoder, draw_weights, run_packed
from elmokit.tasks.networks.tagger import CRF, AlternatingHighwayLSTM
from elmokit.tasks.tag_search import Lattice

from ....builders.task_models import full_inputs, padded_texts

DIM = 3
TEXTS_N, N, MASK_N = padded_texts(4, 1, 2, 0, 3, dim=DIM)
TEXTS_M, M, MASK_M = padded_texts(3, 2, 0, 2, 1, dim=DIM, seed=1)


def drawn(layer):
    """A layer with fresh weights."""
    draw_weights([layer], torch.Generator().manual_seed(0))
    return layer.double().eval()


def check_rows(result, expected):
    """The real positions equal ``expected``, the padded ones are 0."""
    for t, vector in enumerate(expected):
        torch.testing.assert_close(result[t], vector)
    assert (result[len(expected) :] == 0).all()


def mean_of(scores, vectors):
    """The softmax-weighted mean of some vectors; zeros if there are none."""
    return torch.stack(scores).softmax(dim=0) @ vectors if scores else torch.zeros(DIM).double()


def test_soft_alignment_equals_a_loop_over_pairs():
    from_m, from_n = attention.soft_align(N, M, MASK_N, MASK_M)
    for row, (n, m) in enumerate(zip(TEXTS_N, TEXTS_M, strict=True)):
        check_rows(from_m[row], [mean_of([a @ b for b in m], m) for a in n])
        check_rows(from_n[row], [mean_of([a @ b for a in n], n) for b in m])


def trilinear(layer, c, q):
    u, v, w = layer.score.weight
    return u @ c + v @ q + w @ (c * q)


def test_bidaf_attention_equals_a_loop_over_pairs():
    layer = drawn(attention.BiDAFAttention(DIM))
    result = layer(N, M, MASK_N, MASK_M)
    assert result.shape == (5, 4, 4 * DIM)
    for row, (n, m) in enumerate(zip(TEXTS_N, TEXTS_M, strict=True)):
        scores = [[trilinear(layer, c, q) for q in m] for c in n]
        summary = mean_of([max(line) for line in scores if line], n)
        expected = []
        for c, line in zip(n, scores, strict=True):
            mean = mean_of(line, m)
            expected.append(torch.cat((c, mean, c * mean, c * summary)))
        check_rows(result[row], expected)


def test_self_attention_equals_a_loop_over_pairs():
    layer = drawn(attention.SelfAttention(DIM))
    with torch.no_grad():
        layer.no_attend.fill_(0.7)
    result = layer(N, MASK_N)
    assert result.shape == (5, 4, 3 * DIM)
    for row, words in enumerate(TEXTS_N):
        expected = []
        for i, x in enumerate(words):
            others = torch.cat((words[:i], words[i + 1 :]))
            scores = [*(trilinear(layer, x, other) for other in others), layer.no_attend]
            mean = mean_of(scores, torch.cat((others, torch.zeros(1, DIM))))
            expected.append(torch.cat((x, mean, x * mean)))
        check_rows(result[row], expected)


def test_self_attentive_pooling_equals_a_loop_over_positions():
    layer = drawn(attention.SelfAttentivePooling(DIM))
    result = layer(N, MASK_N)
    for row, words in enumerate(TEXTS_N):
        expected = mean_of([layer.score.weight[0] @ x for x in words], words)
        torch.testing.assert_close(result[row], expected)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_an_encoder_equals_torchs_own_layers_on_each_sentence(cell):
    encoder = drawn(SentenceEncoder(DIM, (3, 2), cell=cell))
    out = encoder(N, MASK_N)
    assert out.shape == (5, 4, encoder.output_dim)
    for row, words in enumerate(TEXTS_N):
        expected = words.unsqueeze(0)
        for layer in encoder.layers if len(words) else ():
            expected = layer(expected)[0]
        check_rows(out[row], expected[0])


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_packed_sequences_as_a_gpu_reads_them_give_the_same_numbers(cell):
    results = []
    for packed in (True, False):
        encoder = drawn(SentenceEncoder(DIM, (3,), cell=cell))
        x = N.nan_to_num(nan=7.0).requires_grad_()
        if packed:
            out = run_packed(encoder.layers[0], x, MASK_N.sum(dim=1).clamp(min=1))
            out = out.masked_fill(~MASK_N.unsqueeze(2), 0)
        else:
            out = encoder(x, MASK_N)
        out.square().sum().backward()
        assert (x.grad[~MASK_N] == 0).all()
        assert x.grad[MASK_N].abs().amin() > 0
        results.append([out.detach(), x.grad, *(p.grad for p in encoder.parameters())])
    torch.testing.assert_close(*results)


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


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_a_highway_lstm_equals_the_equations_sentence_by_sentence(num_layers):
    """Layer by layer in the other direction, beginning left to right."""
    encoder = drawn(AlternatingHighwayLSTM(DIM, (3,) * num_layers, dropout=0.0))
    with torch.no_grad():
        for layer in encoder.layers:
            layer.bias.add_(torch.linspace(-1, 1, len(layer.bias)))
    out = encoder(N, MASK_N)
    for row, words in enumerate(TEXTS_N):
        expected = list(words)
        for index, layer in enumerate(encoder.layers):
            step = 1 if index % 2 == 0 else -1
            expected = slow_layer(layer, expected[::step])[::step]
        check_rows(out[row], expected)


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
        sequences = Lattice(own.numpy(), transitions, allowed)
        expected = sequences.of_part(0, gold[: len(own)].tolist()) if len(own) else 1
        assert log_prob.exp().item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("positions", ["output", "both"])
def test_half_of_the_output_mixture_alone_is_dropped_the_same_at_all_words(positions, build):
    torch.manual_seed(0)
    settings = full_inputs(positions=positions, dropout=0.0)
    model = build(ESIM, NliTask(), settings, labels=["yes", "no"])
    ones = np.ones((5, 3, 16), dtype=np.float32)
    batch = model.inputs.make_batch([("a", "b", "c", "d", "e")], [ones])
    encoded, mixture = model._encode(batch).tensor_split([model.encoder.output_dim], dim=2)
    assert mixture.shape == (1, 5, 16)
    assert set(mixture.unique().tolist()) == {0.0, 2.0}
    assert 0.25 < (mixture == 0).float().mean() < 0.75
    assert (mixture == mixture[:, :1]).all()
    assert (encoded != 0).all()
    mixture = model.eval()._encode(batch)[:, :, model.encoder.output_dim :]
    assert (mixture == 1).all()
