"""Checks, counts and limits that all readers share; the files of a data directory."""

import gzip
import io
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import FormatError
from elmokit.tasks.classification import read_labeled_texts, read_sentiment_trees
from elmokit.tasks.formats.conllu import read_propbank
from elmokit.tasks.formats.data_files import find_split, read_records
from elmokit.tasks.formats.senses import read_sense_inventory, read_senses
from elmokit.tasks.qa import QaTask

from ....builders.task_files import KEYS, PAIR, PAIRS, SENSES, lines


def test_examples_pass_and_a_share_of_faults_up_to_the_limit(write, caplog):
    fault, unlabeled = {**PAIR, "premise": " "}, {**PAIR, "label": "-"}

    def num_read(*rows):
        return len(list(read_labeled_texts(write(lines(*rows)), str.split, **PAIRS)))

    assert num_read(PAIR, PAIR) == 2
    assert not caplog.records
    assert num_read(*[PAIR] * 19, fault) == 19  # 1 of 20 = 5 %
    assert re.search(r"empty_text: 1 \(first: .*/data\.txt, line 20\)", caplog.text)
    assert num_read(PAIR, unlabeled, unlabeled) == 1  # no gold label is no fault
    for rows, message in (
        ([PAIR] * 18 + [fault], r"1 of 19 .* 0\.05 .*empty_text: 1 .*line 19\b"),
        ([], "no example"),
        ([unlabeled], r"no example .*no_gold_label: 1 .*line 1\b"),
    ):
        with pytest.raises(FormatError, match=rf"data\.txt: {message}"):
            num_read(*rows)


@pytest.mark.parametrize(
    ("name", "others", "suffixes"),
    [
        ("en_ewt-ud-train.conllu.xz", ["constraints.tsv", ".train.swp"], ()),
        ("x-train.conllu", ["x-train.txt"], (".conllu",)),
        ("training.tsv", ["device.tsv"], ()),
        ("en/train.tsv", [".cache/train.tsv"], ()),
    ],
)
def test_a_split_is_a_whole_part_of_a_name(tmp_path, name, others, suffixes):
    for path in (tmp_path / name, *(tmp_path / other for other in others)):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert find_split(tmp_path, "train", suffixes) == tmp_path / name
    with pytest.raises(FileNotFoundError, match="'dev'"):
        find_split(tmp_path, "dev")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jsonl", '{"a": 1}\n\n{"a": "나"}\n', [(1, {"a": 1}), (3, {"a": "나"})]),
        ("a.jsonl.gz", gzip.compress(b'{"a": 1}', mtime=0), [(1, {"a": 1})]),
        ("a.json", '\n{"a": 1}\n{"a": 2}\n', [(2, {"a": 1}), (3, {"a": 2})]),
        ("a.csv", "[id],text\n1,a\n", [(2, {"[id]": "1", "text": "a"})]),  # no JSON
        ("a.tsv", "{id}\ttext\n1\ta\n", [(2, {"{id}": "1", "text": "a"})]),
        ("a.tsv", 'id\ttext\n1\t"그는\n', [(2, {"id": "1", "text": '"그는'})]),  # no quotes
        ("a.csv", 'a,b\n\n1,"x, ""y""\nz"\n2,d\n',
         [(3, {"a": "1", "b": 'x, "y"\nz'}), (5, {"a": "2", "b": "d"})]),
        ("a.tsv", "a\tb\r\n1\tTrue\r\n", [(2, {"a": "1", "b": "True"})]),
        ("a.csv", "a,b\n1," + "long " * 40_000, [(2, {"a": "1", "b": "long " * 40_000})]),
        ("a.tsv", "a\tb\n", []),
        ("a.tsv", "\n \n", []),
    ],
)  # fmt: skip
def test_files_and_their_records(write, name, content, expected):
    records = read_records(write(content, name=name))
    assert [(record.location.line, dict(record.fields)) for record in records] == expected


class Slow(io.BytesIO):
    """Gives a line at a time, as a slow producer does."""

    def read(self, size=-1):
        return self.readline(size)


@pytest.mark.parametrize("content", [b'{"a": "1"}\n{"a": "2"}\n', b"a\n1\n2\n"])
def test_standard_input_and_pipes_are_read_once(content, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Slow(content)))
    end, start = os.pipe()
    os.write(start, content)
    os.close(start)
    for path in (Path("-"), Path(f"/dev/fd/{end}")):
        assert [record.fields for record in read_records(path)] == [{"a": "1"}, {"a": "2"}]
    os.close(end)


def joined(label, parts):
    """Return a node above others: its text, and the labels and words of all nodes."""
    words = [word for _, ((_, own), *_) in parts for word in own]
    nodes = [node for _, below in parts for node in below]
    return f"({label} {' '.join(text for text, _ in parts)})", [(label, words), *nodes]


WORDS = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1)
LEAVES = WORDS.map(lambda word: (f"(2 {word})", [("2", [word])]))
LABELS = st.sampled_from("01234")


@given(st.recursive(LEAVES, lambda nodes: st.builds(joined, LABELS, st.lists(nodes, min_size=1))))
def test_words_and_nodes_survive(tmp_path_factory, tree):
    text, nodes = tree
    path = tmp_path_factory.mktemp("trees") / "a.txt"
    path.write_bytes(text.encode())
    read = read_sentiment_trees(path, min_phrase_tokens=1)
    assert [(one.label, list(one.sentences[0])) for one in read] == nodes


def test_each_predicate_is_an_example(write, caplog):
    words, tags = ["Mina", "began", "her", "walk"], ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]
    row = {"tokens": words, "predicates": [{"index": 2, "tags": tags}] * 2}
    others = {**row, "predicates": []}, {**row, "tokens": ["Mina", "began", "", "walk"]}
    first, *more = read_propbank(write(lines(*[row] * 20, *others), name="a.jsonl"))
    assert (first.tokens, first.predicate) == (tuple(words), 2)
    assert first.tags == tuple(tags)  # the verb need not be at the predicate
    assert len(more) == 39
    assert "empty_token: 2" in caplog.text


CONTEXT = "한강은 길다. 한강은 서울을 지난다."
#          0    5  8    12     (code points)


def question(*answers, name="q1", text="어디를?", **more):
    given = [{"text": words, "answer_start": start} for words, start in answers]
    return {"id": name, "question": text, "answers": given, **more}


@pytest.fixture
def ask(squad):
    def tokenize(text):
        return text.replace(" ", "")  # a character is a word

    def ask(*questions, training=True):
        path = squad({"context": CONTEXT, "qas": list(questions)})
        return QaTask().read(path, training=training, tokenize=tokenize)

    return ask


@pytest.mark.parametrize(
    ("start", "nearest"), [(0, 0), (1, 0), (4, 0), (5, 8), (8, 8), (9, 8), (999, 8), (-5, 0)]
)
def test_an_answer_beside_its_offset_is_found_at_the_nearest_place(ask, start, nearest, caplog):
    # 한강 stands at 0 and 8; 4 is as near to both, and the earlier one is taken
    (example,) = ask(question(("한강", start), ("서울을", 12)))
    assert [example.offsets[start][0] for start, _ in example.spans] == [nearest, 12]
    assert (example.name, example.answers) == ("q1", ("한강", "서울을"))
    assert ("answer_moved: 1" in caplog.text) == (start != nearest)


def test_questions_and_answers_of_no_use_are_counted(ask, caplog):
    good = [question(("서울", 12))] * 59
    some = question(("부산", 3), ("서울", 12), (" ", 3), name="some")
    bad = question(), question(("서울", 12), text=" "), question(is_impossible=True)
    questions = *good, *bad, some, question(("부산", 3), name="none")
    *_, last = ask(*questions)
    assert (last.name, last.spans) == ("some", ((9, 11),))
    for reason in ("answer_dropped: 2", "answer_not_in_context: 1", "no_answer: 1",
                   "empty_text: 1", "unanswerable: 1"):  # fmt: skip
        assert reason in caplog.text
    *_, first, second = ask(*questions, training=False)
    assert (first.answers, len(first.spans)) == (("부산", "서울"), 1)
    assert (second.answers, second.spans) == (("부산",), ())


OTHERS = """<sentence id="d0.s2"><wf lemma="oh" pos="X">Oh</wf></sentence>
</text>
<text>
<sentence id="d0.s1">
<instance id="d0.s1.t0" lemma="물" pos="NOUN">물</instance>
<wf lemma="." pos=".">.</wf>
</sentence>
</text>
"""


def test_sentences_with_annotated_words(write):
    text = SENSES.replace("</text>\n", OTHERS)
    first, second = read_senses(write(text, name="data.xml"), write(KEYS, name="gold.key.txt"))
    assert first.tokens == ("The", "river", "bank", "rose", "&")
    assert [(one.start, one.end) for one in first.occurrences] == [(1, 3), (3, 4)]
    assert first.occurrences[1].sense_keys == (  # keys joined by semicolons are several
        "rise%2:38:00::", "rise%2:30:01::", "rise%2:37:00::", "stand_up%2:38:00::",
    )  # fmt: skip
    assert (first.occurrences[0].lemma, first.occurrences[0].pos) == ("river_bank", "NOUN")
    assert (second.tokens, second.occurrences[0].name) == (("물", "."), "d0.s1.t0")
    assert (first.document, second.document) == ("d0", "2")


def test_senses_of_the_same_spelling_come_first(write):
    rows = [
        "lemma\tpos\trank\tsense_key\tsynset\tgloss",
        "March\tn\t1\tmarch%1:28:00::\t15-n\tthe month",
        "march\tn\t2\tmarch%1:10:00::\t11-n\tmusic",
        "march\tn\t1\tmarch%1:04:00::\t10-n\ta procession",
        "march\tv\t1\tmarch%2:38:00::\t12-v\twalk in step",
        "river bank\tn\t1\triver_bank%1:17:00::\t13-n\tthe edge",
    ]
    inventory = read_sense_inventory(write("\n".join(rows), name="senses.tsv"))
    keys = [sense.sense_key for sense in inventory.senses("march", "n")]
    assert keys == ["march%1:04:00::", "march%1:10:00::", "march%1:28:00::"]
    for lemma, pos, key in (
        ("March", "NOUN", "march%1:28:00::"), ("march", "VERB", "march%2:38:00::"),
        ("RIVER_BANK", "n", "river_bank%1:17:00::"), ("Brook", "NOUN", None),
        ("march", "ADV", None),
    ):  # fmt: skip
        assert inventory.first_sense(lemma, pos) == key
