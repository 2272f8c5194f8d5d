"""The readers on the public data sets that they are written for, where these are at hand.

Small files are read whole and checked against the figures published beside them; of larger ones the
first examples are read, and the whole only in tests marked slow (`pytest -m slow`).
"""

import lzma
import os
from itertools import islice
from pathlib import Path

import pytest

from elmokit.tasks.formats.conll import read_columns
from elmokit.tasks.formats.conllu import read_conllu
from elmokit.tasks.formats.morphemes import read_morphemes
from elmokit.tasks.formats.ontonotes import read_coreference
from elmokit.tasks.formats.pairs import read_pairs
from elmokit.tasks.formats.propbank import read_propbank
from elmokit.tasks.formats.reading import ExampleReport
from elmokit.tasks.formats.senses import read_sense_inventory, read_senses
from elmokit.tasks.formats.squad import read_squad
from elmokit.tasks.formats.text_labels import read_sentiment_trees, read_text_labels
from elmokit.tasks.formats.word_in_context import read_kobest_wic, read_wic

pytestmark = pytest.mark.usefixtures("without_type_checks")

NUM_EXAMPLES = 100


def slow(*values):
    """Mark a case that takes longer."""
    return pytest.param(*values, marks=pytest.mark.slow)


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


@pytest.mark.parametrize(
    ("name", "num_sentences", "num_words"),
    [
        slow("ud-en-ewt/en_ewt-ud-dev.conllu.xz", 2001, 25_147),
        slow("ud-ko-kaist/ko_kaist-ud-dev.conllu.xz", 2066, 25_278),
        ("ud-ko-gsd/ko_gsd-ud-dev.conllu.xz", 950, 11_958),
        slow("ud-ko-gsd/ko_gsd-ud-train.conllu.xz", 4400, 56_687),
    ],
)
def test_parts_of_speech(find, name, num_sentences, num_words):
    sentences = list(read_conllu(find(name)))
    assert len(sentences) == num_sentences
    assert sum(len(one.tokens) for one in sentences) == num_words


@pytest.mark.parametrize(
    ("name", "num_morphemes"),
    [
        ("ud-ko-kaist/ko_kaist-ud-dev.conllu.xz", 51_208),
        ("ud-ko-gsd/ko_gsd-ud-dev.conllu.xz", 22_595),
        slow("ud-ko-gsd/ko_gsd-ud-train.conllu.xz", 107_147),
    ],
)
def test_morphemes_of_korean_treebanks(find, name, num_morphemes):
    sentences = list(read_morphemes(find(name)))
    assert sum(len(one.tokens) for one in sentences) == num_morphemes


@pytest.mark.parametrize(
    "name",
    [
        "ud-en-ewt/en_ewt-ud-train.conllu.xz",
        "ud-en-ewt/en_ewt-ud-dev.conllu.xz",
        "ud-ko-kaist/ko_kaist-ud-train.conllu.xz",
        "ud-ko-kaist/ko_kaist-ud-dev.conllu.xz",
        "ud-ko-gsd/ko_gsd-ud-train.conllu.xz",
    ],
)
@pytest.mark.parametrize("column", ["upos", "xpos"])
def test_large_treebanks_begin_well(find, name, column):
    assert len(list(islice(read_conllu(find(name), column=column), NUM_EXAMPLES))) == NUM_EXAMPLES


@pytest.mark.parametrize(
    ("name", "num_sentences", "num_skipped", "num_entities", "types"),
    [
        slow("ner-en-uner-ewt/dev.conll.gz", 2001, 0, 966, "PER LOC ORG"),
        ("ner-en-wnut17/dev.conll.gz", 1009, 0, 836, None),
        slow("ner-en-btc/dev.conll.gz", 1998, 3, 3368, "PER LOC ORG"),
        ("ner-en-wikigold/dev.conll.gz", 164, 0, 296, "PER LOC ORG MISC"),
        slow("ner-en-ncbi-disease/dev.conll.gz", 923, 0, 787, "Disease"),
        slow("ner-ko-klue/dev.tsv.gz", 479, 0, 1345, "PS LC OG DT TI QT"),
        slow("ner-ko-kmou/dev.tsv.xz", 1904, 0, 5887, None),
    ],
)
def test_entities(find, name, num_sentences, num_skipped, num_entities, types):
    report = ExampleReport()
    sentences = list(
        read_columns(
            find(name),
            spaces="drop" if "kmou" in name else "keep",
            report=report,
        )
    )
    assert (len(sentences), report.num_faults) == (num_sentences, num_skipped)
    begins = [tag for one in sentences for tag in one.tags if tag.startswith("B-")]
    assert len(begins) == num_entities
    assert types is None or {tag[2:] for tag in begins} == set(types.split())


@pytest.mark.parametrize(
    "name",
    [
        "ner-en-uner-ewt/train.conll.gz",
        "ner-en-wnut17/train.conll.gz",
        "ner-en-btc/train.conll.gz",
        "ner-en-wikigold/train.conll.gz",
        "ner-en-ncbi-disease/train.conll.gz",
        "ner-en-bc5cdr/train.conll.gz",
        "ner-en-bc5cdr/dev.conll.gz",
        "ner-ko-klue/train.tsv.gz",
        "ner-ko-kmou/train.tsv.xz",
    ],
)
def test_large_entity_files_begin_well(find, name):
    assert len(list(islice(read_columns(find(name)), NUM_EXAMPLES))) == NUM_EXAMPLES


@pytest.mark.slow
def test_semantic_roles(find):
    examples = list(read_propbank(find("srl-en-propbank-ewt/dev.jsonl.xz")))
    assert len(examples) == 4931
    arguments = sum(tag[:2] == "B-" and tag != "B-V" for one in examples for tag in one.tags)
    assert arguments == pytest.approx(9524, abs=50)


@pytest.mark.parametrize("part", ["train", "dev"])
def test_semantic_roles_begin_well(find, part):
    path = find(f"srl-en-propbank-ewt/{part}.jsonl.xz")
    assert len(list(islice(read_propbank(path, predicates="verbs"), NUM_EXAMPLES))) == NUM_EXAMPLES


@pytest.mark.parametrize(
    ("name", "num_documents", "num_mentions"),
    [slow("coref-en-gum/dev.conll.xz", 30, 3818), slow("coref-en-litbank/dev.conll.xz", 10, 2842)],
)
def test_coreference(find, name, num_documents, num_mentions):
    documents = list(read_coreference(find(name)))
    assert len(documents) == num_documents
    mentions = [len(cluster) for one in documents for cluster in one.clusters]
    assert sum(mentions) == num_mentions
    is_gum = "gum" in name
    assert (mentions.count(1) > 100) != is_gum  # singletons
    assert all((one.genre is not None) == is_gum for one in documents)
    assert any(one.speakers is not None for one in documents) == is_gum


@pytest.mark.parametrize("name", ["gum", "litbank"])
@pytest.mark.parametrize("part", ["train", "dev"])
def test_coreference_begins_well(find, name, part):
    documents = islice(read_coreference(find(f"coref-en-{name}/{part}.conll.xz")), 2)
    assert all(len(one.clusters) > 5 for one in documents)


@pytest.mark.parametrize(
    ("name", "num_questions"),
    [
        slow("squad-v1.1/dev.json.xz", 5665),
        ("korquad-v1.0/dev.json.xz", 485),
        slow("korquad-v1.0/train.json.xz", 3447),
    ],
)
def test_questions(find, name, num_questions):
    report = ExampleReport()
    assert len(list(read_squad(find(name), report=report))) == num_questions
    assert report.describe() == "nothing skipped"


def test_a_large_set_of_questions_begins_well(find):
    assert (
        len(list(islice(read_squad(find("squad-v1.1/train.json.xz")), NUM_EXAMPLES)))
        == NUM_EXAMPLES
    )


@pytest.mark.parametrize(
    ("name", "num_pairs"),
    [
        ("nli-snli-sample/dev.jsonl.gz", 1003),
        slow("nli-cf-snli/train.jsonl.gz", 8330),
        ("nli-cf-snli/dev.jsonl.gz", 1000),
        slow("nli-mnli-sample/dev.jsonl.gz", 3097),
        slow("nli-xnli-en/dev.jsonl.gz", 2490),
        ("nli-sick/dev.jsonl.gz", 705),
        ("nli-klue-ko/dev.jsonl.gz", 1437),
        slow("nli-xnli-ko/dev.jsonl.gz", 2490),
    ],
)
def test_pairs(find, name, num_pairs):
    assert len(list(read_pairs(find(name)))) == num_pairs


@pytest.mark.parametrize("name", ["nli-snli-sample", "nli-mnli-sample", "nli-sick", "nli-klue-ko"])
def test_large_sets_of_pairs_begin_well(find, name):
    pairs = islice(read_pairs(find(f"{name}/train.jsonl.gz")), NUM_EXAMPLES)
    assert len(list(pairs)) == NUM_EXAMPLES


def test_sentiment_trees(find):
    path = find("sst-5/dev.txt.gz")
    assert len(list(read_sentiment_trees(path))) == 1101
    assert len(list(read_sentiment_trees(path, min_phrase_tokens=4))) > 10_000
    train = read_sentiment_trees(find("sst-5/train.txt.gz"), min_phrase_tokens=1)
    assert len(list(islice(train, NUM_EXAMPLES))) == NUM_EXAMPLES


@pytest.mark.parametrize(
    ("name", "fields", "num_texts"),
    [
        slow("nsmc-rebuilt-ko/dev.tsv.xz", {"text": "document", "labels": ("0", "1")}, 7134),
        ("cls-en-scicite/dev.jsonl.gz", {}, 916),
        slow("cls-en-scicite/train.jsonl.gz", {}, 7320),
        slow("kobest-sentineg-ko/train.tsv.gz", {"text": "Text", "label": "Label"}, 3649),
        ("kobest-sentineg-ko/dev.tsv.gz", {"text": "Text", "label": "Label"}, 400),
    ],
)
def test_labeled_texts(find, name, fields, num_texts):
    assert len(list(read_text_labels(find(name), **fields))) == num_texts


def test_a_large_set_of_reviews_begins_well(find):
    texts = read_text_labels(find("nsmc-rebuilt-ko/train.tsv.xz"), text="document")
    assert len(list(islice(texts, NUM_EXAMPLES))) == NUM_EXAMPLES


def test_senses_and_their_first_sense_baseline(find, tmp_path):
    keys = find("wsd-en/semeval2007.gold.key.txt.xz")
    sentences = list(read_senses(find("wsd-en/semeval2007.data.xml.xz"), keys))
    words = [word for sentence in sentences for word in sentence.occurrences]
    assert len(words) == 455
    # only the senses that are asked for: reading all takes a minute under run-time type checks
    lemmas = {"lemma"} | {word.lemma.replace("_", " ") for word in words}
    with lzma.open(find("wsd-en/oewn2021-senses.tsv.xz"), "rt", encoding="utf-8") as lines:
        wanted = [line for line in lines if line.split("\t")[0].lower() in lemmas]
    path = tmp_path / "senses.tsv"
    path.write_text("".join(wanted), encoding="utf-8")
    inventory = read_sense_inventory(path)
    # published for the first sense of WordNet on this set: 54.5 F1
    right = sum(inventory.first_sense(word.lemma, word.pos) in word.sense_keys for word in words)
    assert right / len(words) == pytest.approx(0.545, abs=0.02)


@pytest.mark.parametrize(
    ("name", "num_examples"), [slow("semcor", NUM_EXAMPLES), ("semeval2007", NUM_EXAMPLES)]
)
def test_annotated_text_begins_well(find, name, num_examples):
    keys = find(f"wsd-en/{name}.gold.key.txt.xz")
    sentences = islice(read_senses(find(f"wsd-en/{name}.data.xml.xz"), keys), NUM_EXAMPLES)
    assert len(list(sentences)) == num_examples


@pytest.mark.parametrize(("part", "num_pairs"), [slow("train", 8000), ("dev", 1000)])
def test_words_in_context(find, part, num_pairs):
    assert len(list(read_wic(find(f"wic-mcl-en/{part}.jsonl.gz")))) == num_pairs


@pytest.mark.parametrize(
    ("part", "num_pairs", "num_skipped"), [slow("train", 3317, 1), ("dev", 610, 0)]
)
def test_korean_words_in_context(find, part, num_pairs, num_skipped):
    report = ExampleReport()
    pairs = list(read_kobest_wic(find(f"kobest-wic-ko/{part}.tsv.gz"), report=report))
    assert (len(pairs), report.num_faults) == (num_pairs, num_skipped)
    assert all(one.text[one.start : one.end].strip() for pair in pairs for one in (pair.first,))


def test_nearly_all_entities_of_klue_can_be_found_in_kiwis_morphemes(find):
    """The others begin or end inside a morpheme."""
    pytest.importorskip("kiwipiepy")
    from elmokit.tasks.ner import NerTask
    from elmokit.text.tokenizers.registry import build_tokenizer

    task, tokenize = NerTask(units="characters"), build_tokenizer("korean").tokenize
    examples = task.read(find("ner-ko-klue/dev.tsv.gz"), training=False, tokenize=tokenize)
    answers = [task.in_units_of_gold(one, list(one.tags)) for one in examples]
    assert len(examples) == 479
    assert 96 < task.score([task.gold(one) for one in examples], answers).value < 100
