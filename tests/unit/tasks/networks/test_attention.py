"""Attention, against loops over pairs of positions."""

import torch

from elmokit.tasks.networks.attention import (
    BiDAFAttention,
    SelfAttention,
    SelfAttentivePooling,
    soft_align,
)
from elmokit.tasks.networks.encoder import draw_weights

DIM = 3


def fresh(kind):
    layer = kind(DIM)
    draw_weights([layer], torch.Generator().manual_seed(0))
    return layer.double()


LENGTHS_N, LENGTHS_M = [4, 1, 2, 0, 3], [3, 2, 0, 2, 1]


def mask_of(lengths):
    return torch.arange(max(lengths)).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)


MASK_N, MASK_M = mask_of(LENGTHS_N), mask_of(LENGTHS_M)


def texts():
    """Two padded batches; what stands at padded positions must never be seen."""
    generator = torch.Generator().manual_seed(0)
    for mask in (MASK_N, MASK_M):
        values = torch.randn(*mask.shape, DIM, generator=generator, dtype=torch.float64)
        yield values.masked_fill(~mask.unsqueeze(2), torch.nan)


def real(n, m):
    """The rows without padding: lists of vectors."""
    for row, (num_n, num_m) in enumerate(zip(LENGTHS_N, LENGTHS_M, strict=True)):
        yield row, list(n[row, :num_n]), list(m[row, :num_m])


def mean_of(scores, vectors):
    """The softmax-weighted mean of some vectors; zeros if there are none."""
    if not vectors:
        return torch.zeros(DIM).double()
    return torch.stack(scores).softmax(dim=0) @ torch.stack(vectors)


def assert_rows(found, expected):
    """The real positions equal ``expected``, the padded ones are 0."""
    for t, vector in enumerate(expected):
        torch.testing.assert_close(found[t], vector)
    assert (found[len(expected) :] == 0).all()


def test_soft_alignment_equals_a_loop_over_pairs():
    n, m = texts()
    from_m, from_n = soft_align(n, m, MASK_N, MASK_M)
    for row, words_n, words_m in real(n, m):
        expected = [mean_of([a @ b for b in words_m], words_m) for a in words_n]
        assert_rows(from_m[row], expected)
        expected = [mean_of([a @ b for a in words_n], words_n) for b in words_m]
        assert_rows(from_n[row], expected)


def trilinear(score, c, q):
    u, v, w = score.weight
    return u @ c + v @ q + w @ (c * q)


def test_bidaf_attention_equals_a_loop_over_pairs():
    attention, (n, m) = fresh(BiDAFAttention), texts()
    found = attention(n, m, MASK_N, MASK_M)
    assert found.shape == (5, 4, 4 * DIM)
    for row, words_n, words_m in real(n, m):
        scores = [[trilinear(attention.score, c, q) for q in words_m] for c in words_n]
        summary = torch.zeros(DIM).double()
        if words_m:
            summary = mean_of([max(line) for line in scores], words_n)
        expected = []
        for c, line in zip(words_n, scores, strict=True):
            mean = mean_of(line, words_m)
            expected.append(torch.cat((c, mean, c * mean, c * summary)))
        assert_rows(found[row], expected)


def test_self_attention_equals_a_loop_over_pairs():
    attention, (n, _) = fresh(SelfAttention), texts()
    with torch.no_grad():
        attention.no_attend.fill_(0.7)
    found = attention(n, MASK_N)
    assert found.shape == (5, 4, 3 * DIM)
    for row, words, _ in real(n, n):
        expected = []
        for i, x in enumerate(words):
            others = words[:i] + words[i + 1 :]
            scores = [trilinear(attention.score, x, other) for other in others]
            nothing = torch.zeros(DIM).double()
            mean = mean_of([*scores, attention.no_attend], [*others, nothing])
            expected.append(torch.cat((x, mean, x * mean)))
        assert_rows(found[row], expected)


def test_self_attentive_pooling_equals_a_loop_over_positions():
    pooling, (n, _) = fresh(SelfAttentivePooling), texts()
    found = pooling(n, MASK_N)
    for row, words, _ in real(n, n):
        expected = mean_of([pooling.score.weight[0] @ x for x in words], words)
        torch.testing.assert_close(found[row], expected)
