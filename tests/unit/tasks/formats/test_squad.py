"""Questions about paragraphs."""

import json

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.formats.squad import read_squad

CONTEXT = "한강은 길다. 한강은 서울을 지난다."
#          0    5  8    12     (code points)


def question(*answers, name="q1", text="어디를?", **more):
    given = [{"text": words, "answer_start": start} for words, start in answers]
    return {"id": name, "question": text, "answers": given, **more}


def document(*questions, context=CONTEXT):
    paragraph = {"context": context, "qas": list(questions)}
    return {"version": "1.1", "data": [{"title": "강", "paragraphs": [paragraph]}]}


GOOD = [question(("서울", 12), name=f"good {number}") for number in range(19)]
"""So many that one fault is 5 %."""


@pytest.fixture
def read(write):
    def read(content, **settings):
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return list(read_squad(write(text, name="a.json"), **settings))

    return read


def test_offsets_count_code_points(read, caplog):
    (example,) = read(document(question(("서울", 12), ("서울을", 12))))
    assert [(answer.text, answer.answer_start) for answer in example.answers] == [
        ("서울", 12), ("서울을", 12),
    ]  # fmt: skip
    assert (example.name, example.question) == ("q1", "어디를?")
    assert example.texts == ("서울", "서울을")
    assert not caplog.records


@pytest.mark.parametrize(
    ("given", "nearest"),
    [(0, 0), (1, 0), (4, 0), (5, 8), (8, 8), (9, 8), (999, 8), (-5, 0)],
)
def test_an_answer_beside_its_offset_is_found_at_the_nearest_place(read, given, nearest, caplog):
    # 한강 stands at 0 and 8; 4 is as near to both, and the earlier one is taken
    (example,) = read(document(question(("한강", given))))
    assert example.answers[0].answer_start == nearest
    assert ("answer_moved: 1" in caplog.text) == (given != nearest)


def test_answers_that_are_not_in_the_context_count_in_scoring_alone(read, caplog):
    content = document(
        *GOOD, question(("부산", 3), ("서울", 12), (" ", 3)), question(("부산", 3), name="q2")
    )
    *_, last = read(content)
    assert (last.name, [answer.text for answer in last.answers]) == ("q1", ["서울"])
    assert "answer_dropped: 2" in caplog.text
    assert "answer_not_in_context: 1" in caplog.text
    *_, first, second = read(content, scoring=True)
    assert (first.texts, len(first.answers)) == (("부산", "서울"), 1)
    assert (second.texts, second.answers) == (("부산",), ())


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (question(("부산", 3)), "answer_not_in_context"),
        (question(), "no_answer"),
        (question(("서울", 12), text=" "), "empty_text"),
    ],
)
def test_questions_of_no_use_are_skipped_and_counted(read, bad, reason, caplog):
    assert len(read(document(*GOOD, bad))) == 19
    assert rf"{reason}: 1 (first: " in caplog.text
    with pytest.raises(FormatError, match=rf"/a\.json: .*{reason}: 1 .*qas\[1\]"):
        read(document(question(("서울", 12)), bad))


def test_unanswerable_questions_of_squad_2_are_no_fault(read, caplog):
    content = document(question(("서울", 12)), question(name="q2", is_impossible=True))
    assert [example.name for example in read(content)] == ["q1"]
    assert "unanswerable: 1" in caplog.text


def without(key, content):
    """Return a copy without a key, wherever it stands."""
    if isinstance(content, dict):
        return {name: without(key, value) for name, value in content.items() if name != key}
    return [without(key, one) for one in content] if isinstance(content, list) else content


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("data", "data"),
        ("paragraphs", r"data\[0\]\.paragraphs"),
        ("qas", r"data\[0\]\.paragraphs\[0\]\.qas"),
        ("answer_start", r"data\[0\].*\.answers\[0\]\.answer_start"),
    ],
)
def test_missing_fields_are_named_with_their_place(read, key, place):
    with pytest.raises(FormatError, match=rf"/a\.json: .*'{place}'"):
        read(without(key, document(question(("서울", 12)))))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [\n{"title"', "JSON.* line 2 "),
        ("[" * 99_999, ""),
        ("[1]", ""),
        ('{"data": []}', "no example"),
        ("", "JSON"),
        ('{"question": "Who?"}\n{"question": "Where?"}\n', "JSON.* line 2 "),  # JSON lines
        (document(question((7, 12))), r".*\.answers\[0\]\.text'.* 7"),
        (document(question((" ", 0)), context=" "), "1 of 1 .*empty_text: 1 "),
    ],
)
def test_damage(read, content, message):
    with pytest.raises(FormatError, match=rf"/a\.json: .*{message}"):
        read(content)
