"""The readers on the public data sets that they are written for, where these are at hand.

They are checked against the figures published beside them; large files only by tests marked slow
(`pytest -m slow`).
"""

import lzma
import os
from functools import partial
from pathlib import Path

import pytest

from elmokit.tasks.classification import NliTask, SentimentTask, read_sentiment_trees
from elmokit.tasks.formats import senses
from elmokit.tasks.formats.conll import read_columns, read_coreference
from elmokit.tasks.formats.conllu import read_conllu, read_morphemes, read_propbank
from elmokit.tasks.qa import QaTask

pytestmark = pytest.mark.usefixtures("without_type_checks")


@pytest.fixture
def find():
    """Return the path of a data file, or skip where there is none."""
    shared = os.environ.get("ELMOKIT_SHARED") or Path(__file__).parents[5] / "shared"

    def find(name: str) -> Path:
        path = Path(shared) / "data" / name
        if not path.exists():
            pytest.skip(f"the data set {name} is not here; ELMOKIT_SHARED can name its folder")
        return path

    return find


def labeled(task):
    return partial(task().read, training=True, tokenize=str.split)


def words(example):
    return len(example.tokens)


def entities(example):
    return sum(tag.startswith("B-") for tag in example.tags)


def mentions(document):
    return sum(map(len, document.clusters))


WHOLE = [
    ("ud-en-ewt/en_ewt-ud-dev.conllu.xz", read_conllu, 2001, words, 25_147),
    ("ud-ko-kaist/ko_kaist-ud-dev.conllu.xz", read_morphemes, 2066, words, 51_208),
    ("ner-en-uner-ewt/dev.conll.gz", read_columns, 2001, entities, 966),
    ("ner-ko-klue/dev.tsv.gz", read_columns, 479, entities, 1345),
    ("ner-ko-kmou/dev.tsv.xz", partial(read_columns, spaces="drop"), 1904, entities, 5887),
    ("srl-en-propbank-ewt/dev.jsonl.xz", read_propbank, 4931, None, 0),
    ("coref-en-gum/dev.conll.xz", read_coreference, 30, mentions, 3818),
    ("squad-v1.1/dev.json.xz", labeled(QaTask), 5665, None, 0),
    ("korquad-v1.0/dev.json.xz", labeled(QaTask), 485, None, 0),
    ("nli-snli-sample/dev.jsonl.gz", labeled(NliTask), 1003, None, 0),
    ("nli-klue-ko/dev.jsonl.gz", labeled(NliTask), 1437, None, 0),
    ("sst-5/dev.txt.gz", read_sentiment_trees, 1101, None, 0),
    ("nsmc-rebuilt-ko/dev.tsv.xz", labeled(SentimentTask), 7134, None, 0),
]
"""Examples, and what they hold in all."""


@pytest.mark.parametrize(
    ("name", "read", "num_examples", "of", "num_in_all"),
    [
        pytest.param(*case, id=case[0], marks=pytest.mark.slow if case[2] > 3000 else ())
        for case in WHOLE
    ],
)
def test_whole_files_hold_what_is_published(find, name, read, num_examples, of, num_in_all):
    examples = list(read(find(name)))
    assert len(examples) == num_examples
    assert of is None or sum(map(of, examples)) == num_in_all


def test_senses_and_their_first_sense_baseline(find, write):
    keys = find("wsd-en/semeval2007.gold.key.txt.xz")
    sentences = list(senses.read_senses(find("wsd-en/semeval2007.data.xml.xz"), keys))
    words = [word for sentence in sentences for word in sentence.occurrences]
    assert len(words) == 455
    # only the senses that are asked for: reading all takes a minute under run-time type checks
    lemmas = {"lemma"} | {word.lemma.replace("_", " ") for word in words}
    with lzma.open(find("wsd-en/oewn2021-senses.tsv.xz"), "rt", encoding="utf-8") as lines:
        wanted = [line for line in lines if line.split("\t")[0].lower() in lemmas]
    inventory = senses.read_sense_inventory(write("".join(wanted)))
    # published for the first sense of WordNet on this set: 54.5 F1
    right = sum(inventory.first_sense(word.lemma, word.pos) in word.sense_keys for word in words)
    assert right / len(words) == pytest.approx(0.545, abs=0.02)
