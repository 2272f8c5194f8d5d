"""Coreference: which mentions of a document refer to the same thing."""

import logging
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError, InputError, counted, shown
from elmokit.metrics.task_scores import MEASURES, average_f1_of, count_clusters, f1s_of
from elmokit.tasks.formats.conll import (
    Clusters,
    CorefDocument,
    Mention,
    documents_of,
    read_coreference,
)
from elmokit.tasks.frozen_tagger import WrittenWords
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.task import Labels, Sentence, Task, TaskScore, Tokenize
from elmokit.text.tokenizers.protocol import Tokenizer

log = logging.getLogger(__name__)

MAX_TRAINING_SENTENCES = 50  # sentences of a document in one update

_LIKE_A_SENTENCE = re.compile(r"\S\s+\S|\w[.?!。！？…]+[\"'”’)]*$")


class CorefTask(Task[CorefDocument]):
    """Coreference, from documents in the columns of CoNLL-2012 (OntoNotes, LitBank, GUM).

    Single mentions are neither found nor scored, even if the data has them.
    """

    name, metric = "coref", "average F1"
    score_from_counts = staticmethod(average_f1_of)
    divide = staticmethod(documents_of)
    network, default_dropout = "coreference.CoreferenceModel", 0.2
    positions = ("input", "output", "both")
    paper_inputs = InputSettings(layer_l2=0.0)
    default_hidden_dims = (100,)  # half of the paper's 200, for modest machines
    batched_by, default_batch_size = "document", 1
    labels_are_answers = False

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[CorefDocument]:
        documents, num_ignored = [], 0
        for document in read_coreference(path):
            # A mention in several clusters stays in the first one.
            clusters = _distinct(document.clusters)
            num_ignored += sum(len(set(cluster)) for cluster in document.clusters)
            num_ignored -= sum(map(len, clusters))
            documents.append(replace(document, clusters=clusters))
        if num_ignored:
            log.warning("%s: %s ignored in a second cluster", path, counted(num_ignored, "mention"))
        if training and not any(len(c) > 1 for document in documents for c in document.clusters):
            raise FormatError(f"{path}: no document has two mentions of one cluster to learn from.")
        return documents

    def sentences(self, example: CorefDocument) -> tuple[Sentence, ...]:
        return example.sentences

    def sampling_unit(self, example: CorefDocument) -> str:
        return example.name  # a document may have several parts

    def part(self, example: CorefDocument, draw: random.Random) -> CorefDocument:
        num_more = len(example.sentences) - MAX_TRAINING_SENTENCES
        if num_more <= 0:
            return example
        first = draw.randint(0, num_more)
        return _window(example, first, first + MAX_TRAINING_SENTENCES)

    def gold(self, example: CorefDocument) -> Clusters:
        return [list(cluster) for cluster in example.clusters]

    def labels(self, examples: Sequence[CorefDocument]) -> Labels:
        return sorted({example.genre for example in examples if example.genre is not None})

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        counts = count_clusters(predicted, gold)
        totals = counts.sum(axis=0)
        details = dict(zip(MEASURES, f1s_of(totals).tolist(), strict=True))
        return TaskScore(self.metric, float(average_f1_of(totals)), details, counts=counts)

    def example_of(self, *sentences: Sentence, texts: Sequence[str] | None = None) -> CorefDocument:
        text = " ".join(texts) if texts else None
        return CorefDocument(name="text", sentences=sentences, clusters=(), text=text)

    def from_text(self, text: str, tokenizer: Tokenizer) -> CorefDocument:
        return self.example_of(*map(tuple, tokenizer.sentences(text)), texts=[text])

    def from_words(self, words: Sequence[Any], tokenize: Tokenize) -> CorefDocument:
        """Make a document of sentences, each a string or a list of words.

        `InputError` for what are words of one sentence: strings without spaces, of which none ends
        as a sentence does.
        """
        strings = [word for word in words if isinstance(word, str) and word.strip()]
        are_words = len(strings) > 1 and not any(map(_LIKE_A_SENTENCE.search, strings))
        if are_words and all(isinstance(word, str) for word in words):
            raise InputError(
                f"{shown(words)}: a document is a list of sentences, each a string or a list of "
                "words. Give one sentence of words as [[…]]."
            )
        return self.from_texts(words, tokenize, len(words))

    def show(self, example: CorefDocument, prediction: Clusters) -> str:
        clusters = enumerate(prediction, 1)
        marks = [
            (*mention, "[", f"]{number}") for number, cluster in clusters for mention in cluster
        ]
        return WrittenWords(example.tokens, example.text).marked(marks)

    def as_json(
        self, example: CorefDocument, prediction: Clusters, probs: None = None
    ) -> dict[str, Any]:
        words = WrittenWords(example.tokens, example.text)
        clusters = [[words.span(*mention) for mention in cluster] for cluster in prediction]
        return {"text": words.text, "tokens": words.as_json(), "clusters": clusters}


def _distinct(clusters: Sequence[Sequence[Mention]]) -> tuple[tuple[Mention, ...], ...]:
    """Keep each mention in its first cluster only; drop empty clusters."""
    seen: set[Mention] = set()
    result = []
    for cluster in clusters:
        own = tuple(mention for mention in dict.fromkeys(cluster) if mention not in seen)
        seen.update(own)
        if own:
            result.append(own)
    return tuple(result)


def _window(document: CorefDocument, first: int, last: int) -> CorefDocument:
    """Return the sentences ``[first, last)`` with the mentions inside."""
    sentences = document.sentences[first:last]
    start = sum(map(len, document.sentences[:first]))
    end = start + sum(map(len, sentences))
    inside = (
        tuple((a - start, b - start) for a, b in cluster if start <= a and b <= end)
        for cluster in document.clusters
    )
    speakers = None if document.speakers is None else document.speakers[start:end]
    clusters = tuple(cluster for cluster in inside if cluster)
    return replace(document, sentences=sentences, clusters=clusters, speakers=speakers)
