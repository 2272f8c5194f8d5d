"""Spans, against enumeration by hand and by loops."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.tasks.networks.spans import (
    NUM_DISTANCE_BUCKETS,
    SpanRepresentation,
    best_answers,
    distance_buckets,
    enumerate_spans,
    prune_spans,
)


def as_pairs(starts, ends):
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


class TestEnumeration:
    def test_hand_worked(self):
        """Sentences of 3, 0 and 2 tokens: 0 1 2 | | 3 4."""
        spans = enumerate_spans(torch.tensor([3, 0, 2]), max_width=2)
        assert as_pairs(*spans) == [
            (0, 1), (0, 2), (1, 2), (1, 3), (2, 3),
            (3, 4), (3, 5), (4, 5),
        ]  # fmt: skip

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

    def test_no_width(self):
        with pytest.raises(ValueError, match=r"`max_width` .*\b1, .*\b0\b"):
            enumerate_spans(torch.tensor([3]), max_width=0)


class TestDistanceBuckets:
    def test_written_out(self):
        edges = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 7: 5, 8: 6, 15: 6, 16: 7, 31: 7, 32: 8}
        edges |= {63: 8, 64: 9, 65: 9, 50_000: 9}
        assert distance_buckets(torch.tensor(list(edges))).tolist() == list(edges.values())
        assert max(edges.values()) == NUM_DISTANCE_BUCKETS - 1

    def test_keeps_the_shape(self):
        assert distance_buckets(torch.tensor([[1, 9], [3, 70]])).tolist() == [[1, 6], [3, 9]]
        assert distance_buckets(torch.zeros(0, 3, dtype=torch.long)).shape == (0, 3)

    def test_negative_distances(self):
        with pytest.raises(ValueError, match=r"`distances` .*\b0, .*-2\b"):
            distance_buckets(torch.tensor([1, -2]))


class TestRepresentation:
    def build(self, *, max_width=3):
        return SpanRepresentation(4, 2, max_width=max_width, width_dim=3).double()

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

    def test_a_sentence_alone_is_as_in_its_document(self):
        layer, (states, embeddings) = self.build(), self.inputs()
        together = layer(states, embeddings, *enumerate_spans(torch.tensor([4, 2]), max_width=3))
        spans = enumerate_spans(torch.tensor([2]), max_width=3)
        torch.testing.assert_close(layer(states[4:], embeddings[4:], *spans), together[-3:])

    def test_gradients(self):
        layer, (states, embeddings) = self.build(), self.inputs()
        starts, ends = enumerate_spans(torch.tensor([4, 2]), max_width=3)

        def run(states, embeddings, *_):
            return layer(states, embeddings, starts, ends)

        inputs = (states.requires_grad_(), embeddings.requires_grad_(), layer.head_score.weight)
        assert torch.autograd.gradcheck(run, inputs)

    def test_no_spans_and_no_tokens(self):
        none = torch.zeros(0, dtype=torch.long)
        for num_tokens in (0, 6):
            assert self.build()(*self.inputs(num_tokens), none, none).shape == (0, 13)

    @pytest.mark.parametrize(("start", "end"), [(2, 2), (0, 4), (-1, 1), (5, 7), (3, 1)])
    def test_impossible_spans(self, start, end):
        starts, ends = torch.tensor([0, start]), torch.tensor([1, end])
        with pytest.raises(ValueError, match=rf"\b1 .*\b3 .*\b6 .*span 1 .*\[{start}, {end}\)"):
            self.build()(*self.inputs(), starts, ends)

    def test_fresh_weights_depend_on_the_generator_alone(self):
        torch.manual_seed(99)
        one, other, fresh = self.build(), self.build(), self.build()
        fresh.reset_parameters(torch.Generator().manual_seed(5))
        assert all(map(torch.equal, one.parameters(), other.parameters()))
        assert not any(map(torch.equal, one.parameters(), fresh.parameters()))
        assert (fresh.width_embedding.weight[0] == 0).all()


def cross(a, b):
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


class TestPruning:
    def test_hand_worked(self):
        """[0, 3) is best; [2, 5) crosses it; [1, 2) is inside; [3, 5) beside; [0, 6) around."""
        spans = [(0, 3), (2, 5), (1, 2), (3, 5), (0, 6)]
        starts, ends = torch.tensor(spans).unbind(dim=1)
        scores = torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0])
        assert prune_spans(scores, starts, ends, num_kept=3).tolist() == [0, 2, 3]
        assert prune_spans(scores, starts, ends, num_kept=9).tolist() == [0, 4, 2, 3]
        assert prune_spans(scores, starts, ends, num_kept=0).tolist() == []

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

    def test_no_spans(self):
        none = torch.zeros(0, dtype=torch.long)
        assert prune_spans(torch.zeros(0), none, none, num_kept=5).tolist() == []


class TestBestAnswers:
    def test_hand_worked(self):
        """Best start 2, best end 0: not a span. [0, 1): 1 + 5; [2, 3): 4 + 1, [0, 3): 1 + 1."""
        start, end = torch.tensor([[1.0, 0, 4]]), torch.tensor([[5.0, 0, 1]])
        found = best_answers(start, end, torch.ones(1, 3, dtype=torch.bool))
        assert (found.start.item(), found.end.item(), found.score.item()) == (0, 1, 6)

    @given(
        seed=st.integers(0, 10_000),
        length=st.integers(1, 9),
        max_length=st.integers(1, 12),
        real=st.floats(0, 1),
    )
    def test_equals_a_loop_over_spans(self, seed, length, max_length, real):
        generator = torch.Generator().manual_seed(seed)
        first, last = torch.randn(2, 3, length, generator=generator).log_softmax(dim=2)
        mask = torch.rand(3, length, generator=generator) < real
        found = best_answers(first, last, mask, max_length=max_length)
        for row in range(3):
            spans = [
                (start, end)
                for start, end in itertools.combinations(range(length + 1), 2)
                if end - start <= max_length and mask[row, start] and mask[row, end - 1]
            ]
            expected = max(
                spans, key=lambda s: (first[row, s[0]] + last[row, s[1] - 1]).item(), default=(0, 0)
            )
            assert (found.start[row].item(), found.end[row].item()) == expected
            if not spans:
                assert found.score[row].item() == -torch.inf

    def test_a_row_alone_is_as_in_a_padded_batch(self):
        generator = torch.Generator().manual_seed(0)
        first, last = torch.randn(2, 4, 30, generator=generator)
        lengths = [30, 0, 7, 1]
        mask = torch.arange(30).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)
        first, last = (x.masked_fill(~mask, torch.nan) for x in (first, last))
        together = best_answers(first, last, mask)
        for row, length in enumerate(lengths):
            one = slice(row, row + 1), slice(0, length)
            alone = best_answers(first[one], last[one], mask[one])
            assert alone.start.item() == together.start[row].item()
            assert alone.end.item() == together.end[row].item()
            assert alone.score.item() == together.score[row].item()

    def test_equal_scores_give_the_earliest_then_the_shortest(self):
        zeros = torch.zeros(1, 6)
        found = best_answers(zeros, zeros, torch.tensor([[False, *[True] * 5]]))
        assert (found.start.item(), found.end.item()) == (1, 2)

    def test_no_length(self):
        zeros = torch.zeros(1, 3)
        with pytest.raises(ValueError, match=r"`max_length` .*\b1, .*\b0\b"):
            best_answers(zeros, zeros, zeros == 0, max_length=0)

    @pytest.mark.parametrize("shape", [(2, 0), (0, 3), (0, 0)])
    def test_no_rows_and_no_positions(self, shape):
        zeros = torch.zeros(shape)
        found = best_answers(zeros, zeros, zeros == 0)
        assert found.start.tolist() == found.end.tolist() == [0] * shape[0]
        assert found.score.tolist() == [-torch.inf] * shape[0]
