"""Attention, against loops over pairs of positions."""

import torch

from elmokit.tasks.networks import attention
from elmokit.tasks.networks.encoder import draw_weights

from ....builders.task_models import padded_texts

DIM = 3
TEXTS_N, N, MASK_N = padded_texts(4, 1, 2, 0, 3, dim=DIM)
TEXTS_M, M, MASK_M = padded_texts(3, 2, 0, 2, 1, dim=DIM, seed=1)


def fresh(kind):
    layer = kind(DIM)
    draw_weights([layer], torch.Generator().manual_seed(0))
    return layer.double()


def mean_of(scores, vectors):
    """The softmax-weighted mean of some vectors; zeros if there are none."""
    return torch.stack(scores).softmax(dim=0) @ vectors if scores else torch.zeros(DIM).double()


def check_rows(found, expected):
    """The real positions equal ``expected``, the padded ones are 0."""
    for t, vector in enumerate(expected):
        torch.testing.assert_close(found[t], vector)
    assert (found[len(expected) :] == 0).all()


def test_soft_alignment_equals_a_loop_over_pairs():
    from_m, from_n = attention.soft_align(N, M, MASK_N, MASK_M)
    for row, (n, m) in enumerate(zip(TEXTS_N, TEXTS_M, strict=True)):
        check_rows(from_m[row], [mean_of([a @ b for b in m], m) for a in n])
        check_rows(from_n[row], [mean_of([a @ b for a in n], n) for b in m])


def trilinear(layer, c, q):
    u, v, w = layer.score.weight
    return u @ c + v @ q + w @ (c * q)


def test_bidaf_attention_equals_a_loop_over_pairs():
    layer = fresh(attention.BiDAFAttention)
    found = layer(N, M, MASK_N, MASK_M)
    assert found.shape == (5, 4, 4 * DIM)
    for row, (n, m) in enumerate(zip(TEXTS_N, TEXTS_M, strict=True)):
        scores = [[trilinear(layer, c, q) for q in m] for c in n]
        summary = mean_of([max(line) for line in scores if line], n)
        expected = []
        for c, line in zip(n, scores, strict=True):
            mean = mean_of(line, m)
            expected.append(torch.cat((c, mean, c * mean, c * summary)))
        check_rows(found[row], expected)


def test_self_attention_equals_a_loop_over_pairs():
    layer = fresh(attention.SelfAttention)
    with torch.no_grad():
        layer.no_attend.fill_(0.7)
    found = layer(N, MASK_N)
    assert found.shape == (5, 4, 3 * DIM)
    for row, words in enumerate(TEXTS_N):
        expected = []
        for i, x in enumerate(words):
            others = torch.cat((words[:i], words[i + 1 :]))
            scores = [*(trilinear(layer, x, other) for other in others), layer.no_attend]
            mean = mean_of(scores, torch.cat((others, torch.zeros(1, DIM))))
            expected.append(torch.cat((x, mean, x * mean)))
        check_rows(found[row], expected)


def test_self_attentive_pooling_equals_a_loop_over_positions():
    layer = fresh(attention.SelfAttentivePooling)
    found = layer(N, MASK_N)
    for row, words in enumerate(TEXTS_N):
        expected = mean_of([layer.score.weight[0] @ x for x in words], words)
        torch.testing.assert_close(found[row], expected)
