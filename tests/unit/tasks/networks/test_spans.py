"""Spans of documents and their scores, against plain forms by loops and concatenated vectors."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.tasks.networks.encoder import draw_weights
from elmokit.tasks.networks.spans import (
    NUM_DISTANCE_BUCKETS,
    AntecedentScore,
    AntecedentScores,
    SpanRepresentation,
    distance_buckets,
    enumerate_spans,
    prune_spans,
)


def as_pairs(starts, ends):
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


class TestEnumeration:
    @given(lengths=st.lists(st.integers(0, 6), max_size=5), max_width=st.integers(1, 8))
    def test_finds_every_span_within_a_sentence_and_no_other(self, lengths, max_width):
        expected, offset = [], 0
        for length in lengths:
            expected += [
                (offset + start, offset + end)
                for start in range(length)
                for end in range(start + 1, min(length, start + max_width) + 1)
            ]
            offset += length
        found = enumerate_spans(torch.tensor(lengths, dtype=torch.long), max_width=max_width)
        assert as_pairs(*found) == expected


class TestDistanceBuckets:
    def test_written_out(self):
        edges = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 7: 5, 8: 6, 15: 6, 16: 7, 31: 7, 32: 8}
        edges |= {63: 8, 64: 9, 65: 9, 50_000: 9}
        assert distance_buckets(torch.tensor(list(edges))).tolist() == list(edges.values())
        assert max(edges.values()) == NUM_DISTANCE_BUCKETS - 1


class TestRepresentation:
    def build(self, *, seed=0):
        layer = SpanRepresentation(4, 2, max_width=3, width_dim=3)
        layer.reset_parameters(torch.Generator().manual_seed(seed))
        return layer.double()

    def inputs(self, num_tokens=6):
        generator = torch.Generator().manual_seed(0)
        states = torch.randn(num_tokens, 4, generator=generator, dtype=torch.float64)
        return states, torch.randn(num_tokens, 2, generator=generator, dtype=torch.float64)

    def test_equals_a_loop_over_spans(self):
        layer, (states, embeddings) = self.build(), self.inputs()
        starts, ends = enumerate_spans(torch.tensor([4, 2]), max_width=3)
        found = layer(states, embeddings, starts, ends)
        assert found.shape == (len(starts), layer.output_dim)
        for vector, (start, end) in zip(found, as_pairs(starts, ends), strict=True):
            weights = (states[start:end] @ layer.head_score.weight[0]).softmax(dim=0)
            head = weights @ embeddings[start:end]
            width = layer.width_embedding.weight[end - start]
            expected = torch.cat((states[start], states[end - 1], head, width))
            torch.testing.assert_close(vector, expected)


def cross(a, b):
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


class TestPruning:
    @given(
        seed=st.integers(0, 10_000),
        num_tokens=st.integers(1, 12),
        max_width=st.integers(1, 6),
        num_kept=st.integers(0, 30),
    )
    def test_equals_the_greedy_choice_over_all_pairs(self, seed, num_tokens, max_width, num_kept):
        generator = torch.Generator().manual_seed(seed)
        starts, ends = enumerate_spans(torch.tensor([num_tokens]), max_width=max_width)
        scores = torch.randint(0, 9, (len(starts),), generator=generator).float()
        spans, kept = as_pairs(starts, ends), []
        for index in sorted(range(len(spans)), key=lambda i: -scores[i].item()):
            crosses = any(cross(spans[index], spans[other]) for other in kept)
            if len(kept) < num_kept and not crosses:
                kept.append(index)
        found = prune_spans(scores, starts, ends, num_kept=num_kept).tolist()
        assert found == sorted(kept, key=lambda i: spans[i])


# --- scores --------------------------------------------------------------------------------------

GENRE = 2
INF = math.inf


def drawn(module, seed=0):
    """Give a module weights that matter all: also biases and unknown features."""
    generator = torch.Generator().manual_seed(seed)
    draw_weights([module], generator)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return module


def make(num_spans, *, seed=0, span_dim=6, max_antecedents=9, **settings):
    """Return a scorer and what it reads."""
    generator = torch.Generator().manual_seed(seed)
    settings |= {"max_antecedents": max_antecedents, "feature_dim": 3, "num_genres": 2}
    scorer = drawn(AntecedentScore(span_dim, 5, **settings), seed)
    vectors = torch.randn(num_spans, span_dim, generator=generator)
    mentions = torch.randn(num_spans, generator=generator)
    speakers = torch.randint(0, 3, (num_spans,), generator=generator)
    return scorer.eval(), vectors, mentions, speakers


def plain_score(scorer, vectors, mentions, speakers, i, j):
    """Return the score of one pair by the equations."""
    same = 0 if 0 in (speakers[i], speakers[j]) else 2 if speakers[i] == speakers[j] else 1
    features = scorer.speaker.weight[same], scorer.genre.weight[GENRE]
    distance = scorer.distance.weight[distance_buckets(torch.tensor(i - j))]
    pair = torch.cat([vectors[i], vectors[j], vectors[i] * vectors[j], distance, *features])
    hidden = torch.relu(scorer.second(torch.relu(scorer.first(pair))))
    return scorer.to_score(hidden).squeeze() + mentions[i] + mentions[j]


def whole(blocks, num_spans):
    """Return the scores of all blocks as one matrix."""
    scores = torch.full((num_spans, num_spans), -INF)
    for block in blocks:
        rows, columns = block.scores.shape
        first, at = block.first_span, block.first_antecedent
        scores[first : first + rows, at : at + columns] = block.scores
    return scores


@given(
    num_spans=st.integers(0, 9),
    max_antecedents=st.integers(1, 11),
    together=st.integers(1, 10),
    seed=st.integers(0, 1000),
)
def test_scores_of_blocks_are_those_of_single_pairs(num_spans, max_antecedents, together, seed):
    scorer, *read = make(num_spans, seed=seed, max_antecedents=max_antecedents)
    scores = whole(scorer(*read, GENRE, together=together), num_spans)
    expected = torch.full((num_spans, num_spans), -INF)
    for i, j in itertools.product(range(num_spans), repeat=2):
        if 0 < i - j <= max_antecedents:
            expected[i, j] = plain_score(scorer, *read, i, j)
    torch.testing.assert_close(scores, expected)


@given(
    num_rows=st.integers(1, 5), first=st.integers(0, 5), num_antecedents=st.integers(1, 4),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_the_loss_is_that_of_all_right_antecedents_and_the_best_is_above_none(
    num_rows, first, num_antecedents, seed
):
    generator = torch.Generator().manual_seed(seed)
    start = first + 2
    scores = torch.randn(num_rows, num_rows + 2, generator=generator, dtype=torch.float64)
    clusters = torch.randint(0, 3, (start + num_rows,), generator=generator)
    for row, column in itertools.product(range(num_rows), range(num_rows + 2)):
        if not 0 < start + row - (first + column) <= num_antecedents:
            scores[row, column] = -INF
    block = AntecedentScores(start, first, scores)
    loss, best = block.loss(clusters), block.best()
    for row in range(num_rows):
        span = start + row
        possible = [first + c for c in range(num_rows + 2) if scores[row, c] > -INF]
        weights = {other: math.exp(scores[row, other - first]) for other in possible}
        right = [o for o in possible if clusters[o] == clusters[span] > 0]
        correct = sum(weights[other] for other in right) or 1.0  # none is right
        total = 1 + sum(weights.values())
        assert loss[row].item() == pytest.approx(-math.log(correct / total))
        nearest = max(weights, key=weights.get, default=-1)
        expected = nearest if possible and weights[nearest] > 1 else -1
        assert best[row].item() == expected
