"""Drawings of single lessons of the course: docs/images/elmo-PART-LANGUAGE.svg.

    python recipes/lesson_diagrams.py

`senses` has one word's vectors in three sentences, as far apart in every layer as the unit vectors
of the packaged model are.
"""

import json

import numpy as np
import torch
from diagrams import BLUE, FOLDER, GRAY, ORANGE, SENTENCES, TEAL, VIOLET, Drawing

FIRST = FOLDER.parents[1] / "src/elmokit/web/page/static/packs/first.js"
TEXTS = {
    "en": {
        "one_hot": "one-hot", "matrix": "matrix: 5 words, 3 dimensions", "row": "the word's row",
        "center": "center word v", "context": "context words u", "raise": "their scores: raised",
        "noise": "random words: lowered", "layer": "layer {}",
        "to_task": "violet: what the task gets", "gates": "gates",
        "cell": "cell: the memory", "forget": "keep", "input": "write",
        "output": "show", "vocabulary": "793,471 words", "sample": "8192 drawn", "target": "target",
        "skipped": "not computed", "sees": "what a layer sees at the word in the middle",
    },
    "ko": {
        "one_hot": "원핫", "matrix": "행렬: 단어 5개, 3차원", "row": "그 단어의 행",
        "center": "중심 단어 v", "context": "주변 단어 u", "raise": "주변 단어: 점수를 올림",
        "noise": "무작위 단어: 점수를 내림", "layer": "{}층", "to_task": "보라색: 과제에 넘기는 것",
        "gates": "게이트", "cell": "셀: 기억", "forget": "남기기", "input": "쓰기",
        "output": "내보내기", "vocabulary": "단어 793,471개", "sample": "8192개만 뽑음",
        "target": "정답", "skipped": "계산하지 않음", "sees": "가운데 단어에서 층이 보는 것",
    },
}  # fmt: skip


def lookup(words: dict[str, str], name: str) -> None:
    """Draw the product of a one-hot vector with a matrix, that of step 1: one of its rows."""
    sheet = Drawing(720, 210, f"{words['one_hot']} → {words['row']}")
    matrix = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))  # as in lesson 1
    sheet.text(110, 24, words["one_hot"], size=13)
    sheet.text(380, 24, words["matrix"], size=13)
    sheet.text(620, 24, words["row"], size=13)
    for row in range(5):
        is_word = row == 2
        sheet.box(20 + row * 36, 92, 32, 30, str(int(is_word)), color=BLUE if is_word else GRAY)
        for column in range(3):
            x, y = 308 + column * 50, 36 + row * 33
            color = BLUE if is_word else GRAY
            sheet.box(x, y, 46, 29, f"{matrix[row, column]:.1f}", color=color, size=13)
    sheet.text(256, 114, "×", size=20)
    sheet.arrow(464, 117, 536, 117, color=GRAY)
    for column in range(3):
        x = 546 + column * 50
        sheet.box(x, 102, 46, 29, f"{matrix[2, column]:.1f}", color=BLUE, size=13)
    sheet.save(name)


def skip_gram(sentence: list[str], words: dict[str, str], name: str) -> None:
    """Draw a center word, its window, and the words drawn as noise."""
    sheet = Drawing(720, 210, f"{words['center']}, {words['context']}")
    middle = 2
    for place, word in enumerate(sentence):
        color = BLUE if place == middle else TEAL
        sheet.box(40 + place * 100, 96, 84, 36, word, color=color, size=16)
        if place != middle:
            end = 82 + place * 100
            height = 20 if abs(place - middle) > 1 else 52
            sheet.parts.append(
                f'<path d="M282 94 Q{(282 + end) / 2:g} {height} {end} 92" '
                f'fill="none" stroke="{TEAL}" stroke-width="1.6" marker-end="url(#{TEAL[1:]})"/>'
            )
    sheet.text(282, 152, words["center"], color=BLUE, size=13)
    sheet.text(82, 152, words["context"], color=TEAL, size=13)
    sheet.text(82, 24, words["raise"], color=TEAL, size=13)
    for place in range(3):
        sheet.box(566 + place * 46, 96, 40, 36, "?", color=ORANGE, size=16)
    sheet.text(634, 152, words["noise"], color=ORANGE, size=13)
    sheet.text(360, 190, "log σ(u · v) + Σ log σ(−u′ · v)", color=VIOLET, size=15)
    sheet.save(name)


def used_layers(words: dict[str, str], name: str) -> None:
    """Draw which layers of three models a task gets."""
    sheet = Drawing(720, 220, "CoVe, TagLM, ELMo")
    models = (("CoVe", "", {2}), ("TagLM", "→ ←", {2}), ("ELMo", "→ ←", {0, 1, 2}))
    for column, (model, kind, used) in enumerate(models):
        x = 50 + column * 226
        sheet.text(x + 84, 26, model, bold=True, size=16)
        for layer in range(3):
            color = VIOLET if layer in used else GRAY
            label = words["layer"].format(layer) + (f"  {kind}" if layer else "")
            sheet.box(x, 40 + (2 - layer) * 48, 168, 34, label, color=color)
            if layer:
                sheet.arrow(x + 84, 87 + (2 - layer) * 48, x + 84, 76 + (2 - layer) * 48)
    sheet.text(360, 208, words["to_task"], color=VIOLET, size=13)
    sheet.save(name)


def senses(language: str, words: dict[str, str], name: str) -> None:
    """Draw the vectors of one word in three sentences, layer by layer."""
    entry = json.loads(FIRST.read_text(encoding="utf-8").partition("=")[2])[language]
    sheet = Drawing(430, 350, " / ".join(one["text"] for one in entry["sentences"]))
    colors = (TEAL, TEAL, ORANGE)
    for number, (one, color) in enumerate(zip(entry["sentences"], colors, strict=True)):
        y = 40 + number * 48
        sheet.box(16, y - 20, 28, 28, str(number + 1), color=color)
        sheet.text(54, y, one["text"], anchor="start", size=15)
        sheet.text(54, y + 18, one["sense"][language], anchor="start", size=12, color=color)
    places = np.stack([_triangle(cosines) for cosines in entry["cosines"]])  # (L, 3, 2)
    places *= 46 / np.abs(places).max()
    for layer, points in enumerate(places):
        x = 75 + layer * 140
        sheet.box(x - 65, 172, 130, 138)
        sheet.text(x, 336, words["layer"].format(layer), color=VIOLET, bold=True)
        if np.abs(points).max() < 0.5:
            sheet.dot(x, 241, "1 2 3", color=VIOLET, radius=20)
            continue
        for number in (2, 1, 0):
            dx, dy = points[number]
            sheet.dot(x + dx, 241 + dy, str(number + 1), color=colors[number])
    sheet.save(name)


def _triangle(cosines: list[float]) -> np.ndarray:
    """Return three points (3, 2) as far apart as unit vectors with the cosines 1-2, 1-3 and 2-3."""
    a, b, c = (np.sqrt(max(0.0, 2 - 2 * one)) for one in cosines)
    x = (a * a + b * b - c * c) / (2 * b) if b else 0.0
    points = np.array([[0.0, 0.0], [x, -np.sqrt(max(0.0, a * a - x * x))], [b, 0.0]])
    return points - points.mean(axis=0)


def lstm_cell(words: dict[str, str], name: str) -> None:
    """Draw one step of an LSTM with a projection."""
    sheet = Drawing(720, 260, "LSTM")
    sheet.box(20, 60, 60, 36, "cₜ₋₁", color=VIOLET, size=16)
    sheet.arrow(82, 78, 186, 78, color=VIOLET)
    sheet.text(400, 40, words["cell"], color=VIOLET, size=13)
    for x, sign, gate, what in (
        (190, "×", "σ(f + 1)", "forget"), (330, "+", "σ(i) · tanh(g)", "input"),
        (520, "×", "σ(o)", "output"),
    ):  # fmt: skip
        sheet.box(x, 62, 34, 32, sign, color=VIOLET, size=18)
        sheet.box(x - 46, 140, 126, 34, gate, color=BLUE, size=13)
        sheet.arrow(x + 17, 139, x + 17, 97, color=GRAY)
        sheet.text(x + 26, 124, words[what], anchor="start", size=12)
    sheet.arrow(226, 78, 326, 78, color=VIOLET)
    sheet.arrow(366, 78, 516, 78, color=VIOLET)
    sheet.text(440, 68, "cₜ → tanh", color=VIOLET, size=13)
    sheet.arrow(556, 78, 586, 78, color=TEAL)
    sheet.box(590, 60, 40, 36, "P", color=TEAL, size=16)
    sheet.arrow(632, 78, 656, 78, color=TEAL)
    sheet.box(660, 60, 44, 36, "hₜ", color=TEAL, size=16)
    sheet.box(190, 212, 390, 34, "W xₜ + U hₜ₋₁ + b", size=15)
    for x in (207, 347, 537):
        sheet.arrow(x, 211, x, 177)
    sheet.text(120, 234, f"{words['gates']} i, f, o; g", size=13)
    sheet.save(name)


def sampling(words: dict[str, str], name: str) -> None:
    """Draw a softmax over a target and some words drawn at random."""
    sheet = Drawing(720, 170, f"{words['target']} + {words['sample']}")
    drawn = set(np.random.default_rng(1).choice(60, 12, replace=False).tolist()) - {23}
    for place in range(60):
        color = VIOLET if place == 23 else ORANGE if place in drawn else GRAY
        height = 78 if place == 23 else 44 if place in drawn else 12
        sheet.box(20 + place * 11.4, 110 - height, 9, height, color=color)
    sheet.text(20, 20, words["vocabulary"], anchor="start", size=13)
    sheet.text(287, 22, words["target"], color=VIOLET, bold=True)
    sheet.text(180, 142, words["sample"], color=ORANGE, bold=True)
    sheet.text(520, 142, words["skipped"], size=13)
    sheet.save(name)


def directions(words: dict[str, str], name: str) -> None:
    """Draw which words a layer sees in ELMo, GPT and BERT."""
    sheet = Drawing(720, 210, f"ELMo, GPT, BERT: {words['sees']}")
    for column, (model, rows) in enumerate(
        [("ELMo", [(TEAL, -1), (ORANGE, 1)]), ("GPT", [(TEAL, -1)]), ("BERT", [(VIOLET, 0)])]
    ):
        x = 24 + column * 236
        sheet.text(x + 100, 26, model, bold=True, size=16)
        for row, (color, side) in enumerate(rows):
            y = 62 + row * 62 + (31 if len(rows) == 1 else 0)
            for place in range(5):
                is_seen = side == 0 or (place - 2) * side >= 0
                shown = color if is_seen else GRAY
                label = "•" if place == 2 else "○" if is_seen else ""
                sheet.box(x + place * 40, y, 34, 30, label, color=shown)
            if side:
                start, end = (x, x + 72) if side < 0 else (x + 196, x + 124)
                sheet.arrow(start, y - 8, end, y - 8, color=color)
    sheet.text(360, 198, words["sees"], size=13)
    sheet.save(name)


def main() -> None:
    """Draw all of them in both languages."""
    for language, words in TEXTS.items():
        lookup(words, f"elmo-lookup-{language}.svg")
        skip_gram(SENTENCES[language], words, f"elmo-skip-gram-{language}.svg")
        used_layers(words, f"elmo-used-layers-{language}.svg")
        senses(language, words, f"elmo-senses-{language}.svg")
        lstm_cell(words, f"elmo-lstm-{language}.svg")
        sampling(words, f"elmo-sampling-{language}.svg")
        directions(words, f"elmo-directions-{language}.svg")


if __name__ == "__main__":
    main()
