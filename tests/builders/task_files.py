"""Texts of task data in several formats, good ones, for tests that read and damage them."""

import json

from elmokit.tasks.classification import PairRecord


def row(number, word, tag="NOUN", *, lemma="_", xpos="_"):
    """A row of CoNLL-U."""
    return f"{number}\t{word}\t{lemma}\t{tag}\t{xpos}\t_\t0\t_\t_\t_\n"


def document(*sentences, name="GUM_news_river", part="000", end="#end document\n"):
    """Write sentences of ``word mark [speaker]`` as a document."""
    lines = [f"#begin document ({name}); part {part}\n"]
    for sentence in sentences:
        for number, word in enumerate(sentence):
            text, mark, speaker = (*word.split(" "), "-")[:3]
            lines.append(f"{name}\t0\t{number}\t{text}" + "\t-" * 5 + f"\t{speaker}\t-\t{mark}\n")
        lines.append("\n")
    return "".join(lines) + end


def lines(*rows):
    """Return JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


PAIR = {"premise": "비가 온다.", "hypothesis": "날이 맑다.", "label": 1}
PAIRS = {"kind": PairRecord, "missing": ("", "-")}
FIRST = """<sentence id="d0.s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="d0.s0.t0" lemma="river_bank" pos="NOUN">river bank</instance>
<instance id="d0.s0.t1" lemma="rise" pos="VERB">rose</instance>
<wf lemma="&amp;" pos="CONJ">&amp;</wf>
</sentence>
"""
SENSES = f"""<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en">
<text id="d0">
{FIRST}</text>
</corpus>
"""
KEYS = (
    "d0.s0.t0 river_bank%1:17:00::\n"
    "d0.s0.t1 rise%2:38:00::;2:30:01:: rise%2:37:00::;stand_up%2:38:00::;\nd0.s1.t0 물%1\n"
)
