"""The network of coreference; its spans and scores, against loops and concatenated vectors."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.tasks.coref import CorefTask
from elmokit.tasks.networks import coreference
from elmokit.tasks.networks.encoder import draw_weights
from elmokit.tasks.runs.examples import Examples, predict

from ....builders.task_models import full_inputs

TASK = CorefTask()


def test_clusters_are_the_same_alone_and_in_a_batch_and_however_sentences_are_batched(
    build, keep, monkeypatch
):
    network = build(coreference.CoreferenceModel, TASK, full_inputs(dropout=0.0))
    with torch.no_grad():  # every span goes back to the nearest one before it
        network.antecedent_score.to_score.bias.fill_(50.0)
    texts = (
        "Anna met her brother Max by the old river bank / she told him that it was late",
        "민지 가 서울 에 갔다 그리고 돌아왔다 / 거기 서 그 는 배 를 탔다 지난 여름 에",
        "It rained all day / and all night",
        "one",
    )
    documents = [TASK.example_of(*(tuple(s.split()) for s in text.split("/"))) for text in texts]
    together = predict(network, Examples(TASK, documents, keep))
    assert together[0][0]
    alone = [predict(network, Examples(TASK, [one], keep))[0] for one in documents]
    assert alone == together
    monkeypatch.setattr("elmokit.tasks.runs.examples.PREDICTION_WORDS", 6)
    assert predict(network, Examples(TASK, documents, keep)) == together


@given(st.lists(st.integers(-1, 8), max_size=10))
def test_links_are_joined_to_clusters_in_text_order(links):
    links = [link if link < at else -1 for at, link in enumerate(links)]
    spans = [(2 * at, 2 * at + 1) for at in range(len(links))]
    roots, clusters = [], {}  # links go back
    for at, link in enumerate(links):
        roots.append(at if link < 0 else roots[link])
        clusters.setdefault(roots[at], []).append(spans[at])
    expected = [cluster for cluster in clusters.values() if len(cluster) > 1]
    assert coreference._join(spans, links) == expected


def as_pairs(starts, ends):
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


@given(lengths=st.lists(st.integers(0, 6), max_size=5), max_width=st.integers(1, 8))
def test_enumeration_finds_every_span_within_a_sentence_and_no_other(lengths, max_width):
    expected, offset = [], 0
    for length in lengths:
        expected += [
            (offset + start, offset + end)
            for start in range(length)
            for end in range(start + 1, min(length, start + max_width) + 1)
        ]
        offset += length
    found = coreference.enumerate_spans(
        torch.tensor(lengths, dtype=torch.long), max_width=max_width
    )
    assert as_pairs(*found) == expected


def test_distance_buckets_written_out():
    edges = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 7: 5, 8: 6, 15: 6, 16: 7, 31: 7, 32: 8}
    edges |= {63: 8, 64: 9, 65: 9, 50_000: 9}
    assert coreference.distance_buckets(torch.tensor(list(edges))).tolist() == list(edges.values())


def test_vectors_of_spans_equal_a_loop():
    generator = torch.Generator().manual_seed(0)
    layer = coreference.SpanRepresentation(4, 2, max_width=3, width_dim=3)
    layer.reset_parameters(generator)
    states, embeddings = (torch.randn(6, dim, generator=generator).double() for dim in (4, 2))
    starts, ends = coreference.enumerate_spans(torch.tensor([4, 2]), max_width=3)
    layer = layer.double()
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


@given(
    seed=st.integers(0, 10_000),
    num_tokens=st.integers(1, 12),
    max_width=st.integers(1, 6),
    num_kept=st.integers(0, 30),
)
def test_pruning_equals_the_greedy_choice_over_all_pairs(seed, num_tokens, max_width, num_kept):
    generator = torch.Generator().manual_seed(seed)
    starts, ends = coreference.enumerate_spans(torch.tensor([num_tokens]), max_width=max_width)
    scores = torch.randint(0, 9, (len(starts),), generator=generator).float()
    spans, kept = as_pairs(starts, ends), []
    for index in sorted(range(len(spans)), key=lambda i: -scores[i].item()):
        crosses = any(cross(spans[index], spans[other]) for other in kept)
        if len(kept) < num_kept and not crosses:
            kept.append(index)
    found = coreference.prune_spans(scores, starts, ends, num_kept=num_kept).tolist()
    assert found == sorted(kept, key=lambda i: spans[i])


GENRE = 2
INF = math.inf


def make(num_spans, *, max_antecedents, seed):
    """Return a scorer whose weights all matter, also biases and unknown features; what it reads."""
    generator = torch.Generator().manual_seed(seed)
    scorer = coreference.AntecedentScore(
        6, 5, max_antecedents=max_antecedents, feature_dim=3, num_genres=2
    )
    draw_weights([scorer], generator)
    with torch.no_grad():
        for parameter in scorer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    vectors = torch.randn(num_spans, 6, generator=generator)
    mentions = torch.randn(num_spans, generator=generator)
    speakers = torch.randint(0, 3, (num_spans,), generator=generator)
    return scorer.eval(), vectors, mentions, speakers


def plain_score(scorer, vectors, mentions, speakers, i, j):
    """Return the score of one pair by the equations."""
    same = 0 if 0 in (speakers[i], speakers[j]) else 2 if speakers[i] == speakers[j] else 1
    features = scorer.speaker.weight[same], scorer.genre.weight[GENRE]
    distance = scorer.distance.weight[coreference.distance_buckets(torch.tensor(i - j))]
    pair = torch.cat([vectors[i], vectors[j], vectors[i] * vectors[j], distance, *features])
    hidden = torch.relu(scorer.second(torch.relu(scorer.first(pair))))
    return scorer.to_score(hidden).squeeze() + mentions[i] + mentions[j]


@given(
    num_spans=st.integers(0, 9),
    max_antecedents=st.integers(1, 11),
    together=st.integers(1, 10),
    seed=st.integers(0, 1000),
)
def test_scores_of_blocks_are_those_of_single_pairs(num_spans, max_antecedents, together, seed):
    scorer, *read = make(num_spans, seed=seed, max_antecedents=max_antecedents)
    scores = torch.full((num_spans, num_spans), -INF)
    expected = scores.clone()
    for block in scorer(*read, GENRE, together=together):
        rows, columns = block.scores.shape
        first, at = block.first_span, block.first_antecedent
        scores[first : first + rows, at : at + columns] = block.scores
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
    start, num_columns = first + 2, num_rows + 2
    scores = torch.randn(num_rows, num_columns, generator=generator, dtype=torch.float64)
    clusters = torch.randint(0, 3, (start + num_rows,), generator=generator)
    for row, column in itertools.product(range(num_rows), range(num_columns)):
        if not 0 < start + row - (first + column) <= num_antecedents:
            scores[row, column] = -INF
    block = coreference.AntecedentScores(start, first, scores)
    loss, best = block.loss(clusters), block.best()
    for row, own in enumerate(clusters[start:]):
        weights = {first + at: math.exp(score) for at, score in enumerate(scores[row])}
        weights = {other: weight for other, weight in weights.items() if weight}
        right = [weight for other, weight in weights.items() if clusters[other] == own > 0]
        correct = sum(right) or 1.0  # none is right
        total = 1 + sum(weights.values())
        assert loss[row].item() == pytest.approx(-math.log(correct / total))
        nearest = max(weights, key=weights.get, default=-1)
        expected = nearest if weights.get(nearest, 0) > 1 else -1
        assert best[row].item() == expected
