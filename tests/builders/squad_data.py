"""Questions and paragraphs in the layout of SQuAD, for the tests."""

import json


def question(text, context, *answers, name=None):
    given = [{"text": answer, "answer_start": context.index(answer)} for answer in answers]
    return {"id": name or text, "question": text, "answers": given}


def paragraph(context, *pairs):
    """Pairs of a question and its answer."""
    return {"context": context, "qas": [question(text, context, *one) for text, *one in pairs]}


def squad_text(*paragraphs):
    """Return the text of a file of these paragraphs."""
    data = [{"title": "t", "paragraphs": list(paragraphs)}]
    return json.dumps({"version": "1.1", "data": data}, ensure_ascii=False)


RIVER = "Minji sat by the river bank. It rained in 1998-99."
SEOUL = "민지는 서울에서 배를 타고 강을 건넜다. 1998년에 비가 왔다."
