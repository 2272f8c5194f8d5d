"""The network of coreference: documents → clusters."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.tasks.coref import CorefTask
from elmokit.tasks.formats.conll import CorefDocument
from elmokit.tasks.networks import coreference as module
from elmokit.tasks.networks.coreference import CoreferenceModel, _join
from elmokit.tasks.runs.examples import Examples, predict

from ....builders.task_models import full_inputs

TASK = CorefTask()


def document(text, *clusters, speakers=None, genre=None):
    """Sentences of ``text`` end at slashes."""
    sentences = tuple(tuple(part.split()) for part in text.split("/"))
    return CorefDocument(
        name="a", part=0, sentences=sentences, clusters=clusters, speakers=speakers, genre=genre,
    )  # fmt: skip


ANNA = document(
    "Anna met her brother Max by the old river bank / "
    "she told him that it was late and then they went home",
    ((0, 1), (2, 3), (10, 11)), ((2, 5), (12, 13)),
)  # fmt: skip
KOREAN = document(
    "민지 가 서울 에 갔다 그리고 돌아왔다 / 거기 서 그 는 배 를 탔다 지난 여름 에",
    ((0, 1), (9, 10)), ((2, 3), (7, 8)),
)  # fmt: skip
RAIN = document("It rained all day / and all night")


def linking(network):
    """Make every span go back to the nearest one before it."""
    with torch.no_grad():
        network.antecedent_score.to_score.bias.fill_(50.0)
    return network


def test_clusters_are_the_same_alone_and_in_a_batch_and_however_sentences_are_batched(
    build, keep, monkeypatch
):
    network, maker = build(CoreferenceModel, TASK, full_inputs(dropout=0.0))
    network = linking(network)
    documents = [ANNA, KOREAN, RAIN, document("one")]
    together = predict(network, maker, Examples(TASK, documents, keep))
    assert together[0]
    alone = [predict(network, maker, Examples(TASK, [one], keep))[0] for one in documents]
    assert alone == together
    monkeypatch.setattr("elmokit.tasks.runs.examples.PREDICTION_WORDS", 6)
    assert predict(network, maker, Examples(TASK, documents, keep)) == together


def test_training_keeps_all_gold_mentions_and_a_bounded_number_of_spans(build, keep, monkeypatch):
    gold = {span for cluster in ANNA.clusters for span in cluster}
    monkeypatch.setattr(module, "MAX_TRAINING_SPANS", len(gold) + 1)
    network, maker = build(CoreferenceModel, TASK, full_inputs(dropout=0.0))
    batches = Examples(TASK, [ANNA], keep).batches(maker, [ANNA])
    kept = {}
    for mode in (True, False):
        network.train(mode)
        ((_, states, embeddings),) = network._read(batches, [ANNA])
        kept[mode] = network._choose(ANNA, states, embeddings).spans
    assert gold <= set(kept[True])
    assert len(gold) <= len(kept[True]) <= len(gold) + 1
    assert kept[True] == sorted(kept[True])
    assert len(kept[False]) == 9
    assert not gold <= set(kept[False])  # answers are not told in prediction


@given(st.lists(st.integers(-1, 8), max_size=10))
def test_links_are_joined_to_clusters_in_text_order(links):
    links = [link if link < at else -1 for at, link in enumerate(links)]
    spans = [(2 * at, 2 * at + 1) for at in range(len(links))]
    groups = [{at} for at in range(len(links))]
    for at, link in enumerate(links):
        if link >= 0:
            joined = groups[at] | groups[link]
            groups = [joined if other in joined else groups[other] for other in range(len(links))]
    expected = {tuple(sorted(group)) for group in groups if len(group) > 1}
    assert _join(spans, links) == [[spans[at] for at in group] for group in sorted(expected)]
