"""Questions about paragraphs."""

import json
import time

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.formats.squad import Answer, read_squad

CONTEXT = "한강은 길다. 한강은 서울을 지난다."
#          0    5  8    12     (code points)


def question(*answers, name="q1", text="어디를?"):
    given = [{"text": words, "answer_start": start} for words, start in answers]
    return {"id": name, "question": text, "answers": given}


def document(*questions, context=CONTEXT):
    paragraph = {"context": context, "qas": list(questions)}
    return {"version": "1.1", "data": [{"title": "강", "paragraphs": [paragraph]}]}


@pytest.fixture
def read(write):
    def read(content, **settings):
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return list(read_squad(write(text, name="a.json"), **settings))

    return read


def test_offsets_count_code_points(read, report):
    (example,) = read(document(question(("서울", 12), ("서울을", 12))), report=report)
    assert example.answers == (Answer(text="서울", start=12), Answer(text="서울을", start=12))
    assert (example.name, example.question) == ("q1", "어디를?")
    assert example.context[12:14] == "서울"
    assert str(example.location).endswith("a.json, data[0].paragraphs[0].qas[0]")
    assert not report.repaired


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (0, 0), (1, 0), (4, 0), (5, 8), (8, 8), (9, 8), (999, 8), (-5, 0),
    ],
)  # fmt: skip
def test_an_answer_beside_its_offset_is_found_at_the_nearest_place(read, report, given, found):
    # 한강 stands at 0 and 8; 4 is as near to both, and the earlier one is taken
    (example,) = read(document(question(("한강", given))), report=report)
    assert example.answers[0].start == found
    assert report.repaired.total() == (given != found)


def test_an_answer_that_is_not_in_the_context_is_left_out(read, report):
    (example,) = read(document(question(("부산", 3), ("서울", 12), (" ", 3))), report=report)
    assert [answer.text for answer in example.answers] == ["서울"]
    assert report.repaired == {"answer_dropped": 2}
    assert not report.skipped


def test_what_is_read_for_scoring_counts_every_question_and_answer(read, report):
    content = document(
        question(("부산", 3), ("서울", 12), (" ", 3)), question(("부산", 3), name="q2"),
        question(name="q3"), question(("서울", 12), name="q4"),
    )  # fmt: skip
    report.max_skipped_share = 0.5
    first, second, third = read(content, report=report, scoring=True)
    assert (first.texts, len(first.answers)) == (("부산", "서울"), 1)
    assert (second.texts, second.answers) == (("부산",), ())
    assert third.name == "q4"
    assert report.skipped == {"no_answer": 1}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (question(("부산", 3), name="q2"), "answer_not_in_context"),
        (question(name="q2"), "no_answer"),
        (question(("서울", 12), name="q2", text=" "), "empty_text"),
    ],
)
def test_questions_of_no_use_are_skipped_and_counted(read, report, bad, reason):
    content = document(question(("서울", 12)), bad)
    report.max_skipped_share = 0.5
    examples = read(content, report=report)
    assert [example.name for example in examples] == ["q1"]
    assert report.skipped == {reason: 1}
    with pytest.raises(FormatError, match=rf"/a\.json: 1 of 2 .* 0\.05 .*{reason}: 1 .*qas\[1\]"):
        read(content)


def test_unanswerable_questions_of_squad_2_are_no_fault(read, report):
    unanswerable = question(name="q2") | {"is_impossible": True}
    answerable = question(("서울", 12)) | {"is_impossible": False}
    examples = read(document(answerable, unanswerable), report=report)
    assert [example.name for example in examples] == ["q1"]
    assert (report.skipped, report.num_faults) == ({"unanswerable": 1}, 0)


def test_a_blank_context_is_of_no_use(read):
    with pytest.raises(FormatError, match=r"/a\.json: 1 of 1 .*empty_text: 1 "):
        read(document(question((" ", 0)), context=" "))


def without(key, content):
    """Return a copy without a key, wherever it stands."""
    if isinstance(content, dict):
        return {name: without(key, value) for name, value in content.items() if name != key}
    return [without(key, one) for one in content] if isinstance(content, list) else content


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("data", ": .*'data'; .*: version"),
        ("paragraphs", r", data\[0\]: .*'paragraphs'; .*: title"),
        ("context", r", data\[0\]\.paragraphs\[0\]: .*'context'; .*: qas"),
        ("qas", r".*\.paragraphs\[0\]: .*'qas'; .*: context"),
        ("id", r".*\.qas\[0\]: .*'id'; .*: question, answers"),
        ("question", r".*\.qas\[0\]: .*'question'; .*: id, answers"),
        ("answers", r".*\.qas\[0\]: .*'answers'; .*: id, question"),
        ("text", r".*\.qas\[0\]\.answers\[0\]: .*'text'; .*: answer_start"),
        ("answer_start", r".*\.answers\[0\]: .*'answer_start'; .*: text"),
    ],
)
def test_missing_fields(read, key, message):
    with pytest.raises(FormatError, match=rf"/a\.json{message}"):
        read(without(key, document(question(("서울", 12)))))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [\n{"title"', r", line 2: .*JSON: .* 9\."),
        ("[" * 99_999, ": JSON "),
        ('{"data": ' + "9" * 9_999 + "}", ": JSON "),
        ("[1]", r": .*JSON object, .* \[1\]"),
        ('{"data": {}}', r": .*'data' .* \{\}"),
        ('{"data": [1]}', r", data\[0\]: .*JSON object, .* 1\."),
        ('{"data": []}', r": .*\bempty\b"),
        ("", r": empty\b.*JSON object"),
        (" \n", r": empty\b.*JSON object"),
        (document(question((7, 12))), r".*\.answers\[0\]: .*'text' .* 7\."),
        (document(question(("서울", "x"))), r".*\.answers\[0\]: .*'answer_start' .*'x'"),
        (
            document(question(("서울", 12)), question(("서울", 12))),
            r".*\.qas\[1\]: .*'q1' ",
        ),
    ],
)
def test_damage(read, content, message):
    with pytest.raises(FormatError, match=rf"/a\.json{message}"):
        read(content)


@pytest.mark.usefixtures("without_type_checks")
def test_a_context_of_50000_words(read, report):
    context = "강 " * 49_999 + "끝"
    questions = [question(("끝", start), name=f"q{start}") for start in range(0, 1000, 10)]
    begin = time.process_time()
    examples = read(document(*questions, context=context), report=report)
    assert {example.answers[0].start for example in examples} == {99_998}
    assert all(example.context is examples[0].context for example in examples)
    assert time.process_time() - begin < 30


def test_json_lines_are_told(tmp_path):
    path = tmp_path / "train.json"
    path.write_text('{"question": "Who?"}\n{"question": "Where?"}\n', encoding="utf-8")
    with pytest.raises(FormatError, match=r"train\.json, line 2: more than one JSON value"):
        list(read_squad(path))
