"""Damaged files of every format: the error names file, place, and what is wrong."""

import json

import pytest

from elmokit.errors import FormatError
from elmokit.tasks import classification
from elmokit.tasks.classification import read_labeled_texts, read_sentiment_trees
from elmokit.tasks.formats import senses
from elmokit.tasks.formats.conll import read_columns, read_coreference
from elmokit.tasks.formats.conllu import read_conllu, read_morphemes, read_propbank
from elmokit.tasks.formats.data_files import read_records
from elmokit.tasks.qa import QaTask

from ....builders.squad_data import paragraph, squad_text
from ....builders.task_files import FIRST, KEYS, PAIR, PAIRS, SENSES, document, row

PREDICATE = {"index": 1, "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]}
QUESTIONS = squad_text(paragraph("한강은 길다.", ("어디?", "한강")))


def labels(path):
    return read_labeled_texts(path, str.split, **PAIRS)


def questions(path):
    return QaTask().read(path, training=True, tokenize=str.split)


def roles(*, tokens=("Mina", "began", "her", "walk"), **change):
    return json.dumps({"tokens": tokens, "predicates": [PREDICATE | change]})


def annotated(path):
    return senses.read_senses(path, path.with_name("keys"))


BOMB = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 60 if n else "boom"}">' for n in range(6))
CASES = {
    read_columns: [
        ("a\tB-PER\nb\n", r"line 2: .*\['b'\].* 2\b"),
        ("a\tB-PER\nb\tPER\n", "line 2: .*'PER'"),
        ("a\tB-PER\nb\tI-O\n", "line 2: .*'I-O'"),
        ("a\nO\n", "line 1: .* 2 .* tab"),
        ("", "no example"),
        ("1\tAnna\tAnna\tPROPN\tNNP\t_\t0\troot\t_\t_\n", "line 1: .*last column"),  # CoNLL-U
        ("word\ttag\nAnna\tB-PER\n", "line 1: .*names"),
        (" \tO\n\ta\n", "1 of 1 .*empty_token: 1 .*line 1\\b"),
    ],
    read_conllu: [
        (row(1, "a") + row(2, "b")[:-3] + "\n", "line 2: .* tabs"),
        (row(1, "a") + row(3, "b"), "line 2: .* 2 .*'3'"),
        (row(1, "a") + row(2, "b", "NUON"), "line 2: .*'NUON' .*'upos'; .*NOUN"),
        (row(1, "a") + "\n1-2\tdon't" + "\t_" * 8, "line 3: .* words"),
    ],
    read_morphemes: [("# text = nothing\n\n", "no example")],
    read_coreference: [
        (document(["a (1", "b -"]), "line 2: .* 1 .*'GUM_news_river'"),
        (document(["a -", "b 1)"]), r"line 3: '1\)' "),
        (document(["a 1"]), r"line 2: '1' "),
        (document(["a -"], end=""), "line 1: .*'GUM_news_river' .*'#end document'"),
        ("GUM\t0\t0\ta\t-\t-\n", r"line 1: .*'#begin document \(NAME\); part N', .*'GUM"),
        (document(["a -", "b -"]).replace("\t1\tb", "\t2\tb"), "line 3: .* 1 .*'2'"),
        (document(["a -", "b -"]).replace("b\t-", "b"), r"line 3: .* 12 columns"),
        (document(), r"1 of 1 .*empty_document: 1 .*line 1\b"),
    ],
    read_records: [
        ('{"a": 1}\n{"a": 1\n', "line 2: Invalid JSON"),
        ('{"a": 1}\n' + "[" * 99_999, "line 2: "),
        ('\n[\n{"a": 1}\n]\n', "line 2: .*JSON lines.* jq "),
        ("a\tb\n1\t2\n3\n", r"line 3: 1 .* 2 \(a, b\)"),
        ("a\ta\n1\t2\n", "line 1: .*: a, a"),
    ],
    labels: [
        (json.dumps({**PAIR, "premise": " \n"}), r"1 of 1 .*empty_text: 1 .*line 1\b"),
        (json.dumps({"premise": "a", "label": "x"}), "line 1: .*'hypothesis'.* required"),
        (json.dumps({**PAIR, "premise": "x " * 6}), "line 1: .* 6 words; at most 5"),
    ],
    read_sentiment_trees: [
        *((f"(2 a)\n{line}\n", r"line 2: .* character \d+.*\(3 \(2 It\)") for line in (
            "(2 (2 a) (2 b)", "(2 (2 a) (2 b)))", "(2 a) (2 b)", "(5 a)", "((2 a))", "(2 )",
            "(2 (2 ) (2 a))", "(", "3 a b", ")", "+\ta fine text",
        )),
    ],
    read_propbank: [
        (roles(tags=["O", "B-V"]), r"line 1, predicates\[0\]: 4 .* 2 "),
        (roles(index=4), r"line 1, predicates\[0\]: .* 4 .* 4 "),
        (roles(index="x"), r"line 1: .*predicates\[0\]\.index'.*'x'"),
        (roles(tokens=["a", 1, "b", "c"]), r"line 1: .*'tokens\[1\]'"),
    ],
    questions: [
        (QUESTIONS.replace('"answer_start"', '"at"'), r"'data\[0\].*\.answers\[0\]\.answer_start'"),
        (QUESTIONS.replace("한강은 길다.", " "), r"1 of 1 .*empty_text: 1 .*qas\[0\]"),
        ('{"data": [\n{"title"', "JSON.* line 2 "),
        ("[" * 99_999, ""),
    ],
    senses.read_sense_inventory: [
        ("lemma\tpos\trank\tsense_key\tsynset\tgloss\n", "no example"),
        ("lemma\tpos\trank\tsense_key\tsynset\tgloss\na\tn\tx\tk\ts\tg\n", "line 2: .*'rank'.*'x'"),
    ],
    annotated: [
        ("", ", line 1: .*XML"),
        (SENSES.removesuffix("</corpus>\n"), ", line 11: .*XML"),
        (SENSES.replace("</wf>", "", 1), ", line 9: .*XML"),
        (SENSES.replace("&amp;<", "&<"), ", line 8: .*XML"),
        (SENSES.replace(FIRST, 2 * FIRST), r": 2 of 4 .*no_gold_key: 2 .*d0\.s0"),  # each has one
        (SENSES.replace(' lemma="rise"', ""), r", sentence d0\.s0: .*lemma"),
        (SENSES.replace("The</wf>", "The</wf> lost"), r", sentence d0\.s0: text"),
        (f"<!DOCTYPE corpus [{BOMB}]>\n<corpus>&a5;</corpus>", ", line 2: .*XML.*amplification"),
        (SENSES.replace("instance", "wf"), r": no example"),
        ("<corpus/>", r": no example"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        pytest.param(read, *case, id=f"{read.__name__}-{number}")
        for read, cases in CASES.items()
        for number, case in enumerate(cases)
    ],
)
def test_damage_is_told_with_its_place(write, read, content, message, monkeypatch):
    monkeypatch.setattr(classification, "MAX_TEXT_WORDS", 5)
    write(KEYS, name="keys")
    path = write(content, name="a.file")
    with pytest.raises(FormatError, match=rf"/a\.file.*{message}"):
        list(read(path))
    with pytest.raises(FileNotFoundError, match="absent"):
        list(read(path.with_name("absent")))
