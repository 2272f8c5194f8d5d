"""The drawing of ELMo in five parts, in English and Korean: docs/images/elmo-PART-LANGUAGE.svg.

    python recipes/diagrams.py

The numbers are those of the packaged models. Forward is teal, backward orange, both together
violet, as in the explorer. All colors are readable on light and dark pages. `lesson_diagrams.py`
draws what single lessons of the course need besides.
"""

from html import escape
from itertools import pairwise
from pathlib import Path

import numpy as np

import elmokit
from elmokit.inspection.trace import WordTrace

FOLDER = Path(__file__).parents[1] / "docs" / "images"
GRAY, TEAL, ORANGE, VIOLET, BLUE = "#7b8494", "#0f9488", "#d9730d", "#8b5cf6", "#3b82c4"
FONT = "system-ui, 'Noto Sans', 'Noto Sans KR', 'Apple SD Gothic Neo', sans-serif"
SENTENCES = {"en": ["They", "sat", "on", "the", "bank"], "ko": ["우리", "는", "배", "를", "타"]}
WORDS = {"en": "bank", "ko": "배"}
TEXTS = {
    "en": {
        "begin": "begin", "end": "end", "padding": "padding", "bytes": "UTF-8 bytes",
        "ids": "character ids = byte + 1, always 50", "embedding": "a vector for each character",
        "filters": "filters slide over the characters",
        "pooling": "max pooling: the largest answer",
        "highway": "highway", "projection": "projection", "token": "token vector x",
        "gate": "gate", "forward": "forward LSTM", "backward": "backward LSTM", "layer": "layer {}",
        "predicts": "softmax: which word comes next, or came before?", "plus": "+",
        "mixture": "ELMo = γ · (s₀ h₀ + s₁ h₁ + s₂ h₂)", "task": "learned by the task",
        "vector": "word vector of the task", "model": "task model", "answer": "answer",
        "frozen": "biLM, frozen", "words": "words",
    },
    "ko": {
        "begin": "시작", "end": "끝", "padding": "패딩", "bytes": "UTF-8 바이트",
        "ids": "문자 id = 바이트 + 1, 언제나 50개", "embedding": "문자마다 벡터 하나",
        "filters": "필터가 문자열을 훑음", "pooling": "맥스 풀링: 가장 큰 반응값만",
        "highway": "하이웨이", "projection": "투영", "token": "토큰 벡터 x",
        "gate": "게이트", "forward": "순방향 LSTM", "backward": "역방향 LSTM", "layer": "{}층",
        "predicts": "소프트맥스: 다음 단어는, 이전 단어는?", "plus": "+",
        "mixture": "ELMo = γ · (s₀ h₀ + s₁ h₁ + s₂ h₂)", "task": "과제에서 학습",
        "vector": "과제의 단어 벡터", "model": "과제 모델", "answer": "답",
        "frozen": "고정된 biLM", "words": "단어",
    },
}  # fmt: skip


class Drawing:
    """Boxes, arrows and words on a sheet."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height = width, height
        self.parts = [f"<title>{escape(title)}</title>"]

    def text(
        self, x: float, y: float, words: str, *, color: str = GRAY, size: int = 14,
        anchor: str = "middle", bold: bool = False,
    ) -> None:  # fmt: skip
        """Write words; ``y`` is their base line."""
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" fill="{color}" font-size="{size}" '
            f'text-anchor="{anchor}"{weight}>{escape(words)}</text>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, words: str = "", *,
        color: str = GRAY, size: int = 14,
    ) -> None:  # fmt: skip
        """Draw a box with words in its middle."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" '
            f'fill="{color}" fill-opacity="0.14" stroke="{color}"/>'
        )
        if words:
            middle = y + height / 2 + size * 0.35
            self.text(x + width / 2, middle, words, color=color, size=size, bold=True)

    def dot(self, x: float, y: float, words: str, *, color: str = GRAY, radius: float = 11) -> None:
        """Draw a full circle with words in it."""
        self.parts.append(
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{radius:g}" fill="{color}"/>'
            f'<text x="{x:.0f}" y="{y + 4:.0f}" fill="#fff" font-size="13" '
            f'text-anchor="middle" font-weight="600">{escape(words)}</text>'
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, *, color: str = GRAY) -> None:
        """Draw an arrow to the second point."""
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" '
            f'stroke-width="1.6" marker-end="url(#{color[1:]})"/>'
        )

    def strip(self, x: float, y: float, values: np.ndarray, *, cell: float = 11) -> None:
        """Draw numbers as cells: blue above 0, orange below, the stronger the larger."""
        largest = float(np.abs(values).max()) or 1.0
        for number, value in enumerate(values.tolist()):
            color = BLUE if value > 0 else ORANGE
            self.parts.append(
                f'<rect x="{x + number * cell:g}" y="{y:g}" width="{cell - 1:g}" '
                f'height="{cell + 5:g}" fill="{color}" '
                f'fill-opacity="{0.08 + 0.9 * abs(value) / largest:.2f}"/>'
            )

    def save(self, name: str) -> None:
        """Write the file."""
        heads = "".join(
            f'<marker id="{color[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{color}"/></marker>'
            for color in (GRAY, TEAL, ORANGE, VIOLET)
        )
        self.parts.insert(1, f"<defs>{heads}</defs>")
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
            f'height="{self.height}" viewBox="0 0 {self.width} {self.height}" '
            f'font-family="{FONT}" role="img">'
        )
        (FOLDER / name).write_text("\n".join([svg, *self.parts, "</svg>"]) + "\n", encoding="utf-8")


def characters(trace: WordTrace, words: dict[str, str], name: str) -> None:
    """Draw a word's way into bytes and ids."""
    sheet = Drawing(720, 190, f"{trace.word} → {' '.join(map(str, trace.raw_bytes))}")
    num_bytes = len(trace.raw_bytes)
    sheet.box(20, 70, 80, 46, trace.word, size=22)
    sheet.arrow(104, 93, 146, 93)
    sheet.text(150 + num_bytes * 29, 60, words["bytes"])
    for place, byte in enumerate(trace.raw_bytes):
        sheet.box(150 + place * 58, 70, 52, 46, str(byte), color=BLUE, size=17)
    left = 150 + num_bytes * 58
    sheet.arrow(left, 93, left + 40, 93)
    ids = list(trace.char_ids[: num_bytes + 4])
    names = [words["begin"], *[""] * num_bytes, words["end"], "", ""]
    width = min(46, (700 - left - 60) / len(ids) - 3)
    for place, (number, label) in enumerate(zip(ids, names, strict=True)):
        x = left + 46 + place * (width + 3)
        is_byte = 0 < place <= num_bytes
        sheet.box(x, 70, width, 46, str(number), color=BLUE if is_byte else GRAY, size=13)
        sheet.text(x + width / 2, 134, label, size=11)
    sheet.text(left + 46 + (len(ids) - 1) * (width + 3), 134, words["padding"], size=11)
    sheet.text(706, 98, "…")
    sheet.text((left + 46 + 700) / 2, 160, words["ids"])
    sheet.text((left + 46 + 700) / 2, 60, "<BOW> … <EOW> <PAD>", size=12)
    sheet.save(name)


def char_cnn(trace: WordTrace, words: dict[str, str], name: str) -> None:
    """Draw filters, their maxima, the highway and the projection."""
    sheet = Drawing(720, 330, f"{words['filters']} → {words['token']}")
    spelled = ["^", *map(str, trace.raw_bytes), "$", "_", "_"]
    for place, sign in enumerate(spelled):
        sheet.box(20 + place * 34, 30, 30, 26, sign, color=BLUE, size=12)
    sheet.text(20, 20, words["embedding"], anchor="start", size=12)
    for row, part in enumerate(trace.filters[1:4]):
        best = int(part.values.argmax())
        x, y = 20 + int(part.positions[best]) * 34, 74 + row * 34
        sheet.box(x, y, part.width * 34 - 4, 22, f"{part.values[best]:.2f}", color=TEAL, size=12)
    sheet.text(20, 190, words["filters"], anchor="start", size=12)
    sheet.arrow(350, 110, 396, 110)
    pooled = np.concatenate([part.values for part in trace.filters])
    strongest = np.sort(pooled)[::-1][:26]
    sheet.text(404, 84, words["pooling"], anchor="start", size=12)
    sheet.strip(404, 96, strongest)
    sheet.text(694, 110, "…")
    gates = trace.highways[-1].gates
    sheet.arrow(548, 122, 548, 158)
    sheet.text(404, 180, f"{words['highway']}: g · relu(Wy) + (1 − g) · y", anchor="start", size=12)
    sheet.strip(404, 192, trace.highways[-1].output[np.argsort(-pooled)[:26]])
    mean = f"{words['gate']} g: {gates.min():.2f} … {gates.max():.2f}"
    sheet.text(404, 226, mean, anchor="start", size=11)
    sheet.arrow(548, 236, 548, 262)
    vector = trace.layers[0].forward
    sheet.text(
        404, 280, f"{words['projection']} → {words['token']} ({len(vector)})", anchor="start",
        size=12,
    )  # fmt: skip
    sheet.strip(404, 292, vector[:26])
    sheet.text(694, 306, "…")
    sheet.save(name)


def two_lstms(sentence: list[str], words: dict[str, str], name: str) -> None:
    """Draw the layers of both directions over a sentence."""
    sheet = Drawing(720, 330, f"{words['forward']}, {words['backward']}")
    places = [170 + number * 108 for number in range(5)]
    sheet.text(360, 22, words["predicts"], size=13)
    for x, word in zip(places, sentence, strict=True):
        sheet.text(x, 312, word, size=16, bold=True)
        sheet.box(x - 34, 262, 68, 26, "x", size=13)
        for number, y in enumerate((196, 76)):
            sheet.box(x - 44, y, 42, 30, f"→h{'₁₂'[number]}", color=TEAL, size=13)
            sheet.box(x + 2, y + 26, 42, 30, f"←h{'₁₂'[number]}", color=ORANGE, size=13)
        sheet.arrow(x - 23, 261, x - 23, 228, color=TEAL)
        sheet.arrow(x - 23, 195, x - 23, 108, color=TEAL)
        sheet.arrow(x + 23, 261, x + 23, 254, color=ORANGE)
        sheet.arrow(x + 23, 221, x + 23, 134, color=ORANGE)
        sheet.arrow(x - 23, 75, x - 23, 40, color=TEAL)
        sheet.arrow(x + 23, 101, x + 23, 40, color=ORANGE)
    for left, right in pairwise(places):
        for y in (196, 76):
            sheet.arrow(left - 1, y + 15, right - 46, y + 15, color=TEAL)
            sheet.arrow(right + 1, y + 41, left + 46, y + 41, color=ORANGE)
    for number, y in ((1, 196), (2, 76)):
        sheet.text(14, y + 40, words["layer"].format(number), anchor="start", size=12)
    sheet.text(14, 280, words["layer"].format(0), anchor="start", size=12)
    sheet.text(14, 60, words["forward"], color=TEAL, anchor="start", size=12, bold=True)
    sheet.text(14, 44, words["backward"], color=ORANGE, anchor="start", size=12, bold=True)
    sheet.save(name)


def mixture(trace: WordTrace, words: dict[str, str], name: str) -> None:
    """Draw the sum of a word's layers."""
    sheet = Drawing(720, 250, words["mixture"])
    for index, layer in enumerate(trace.layers):
        y = 24 + (2 - index) * 58
        sheet.text(20, y + 14, words["layer"].format(index), anchor="start")
        sheet.text(84, y + 14, f"h{'₀₁₂'[index]} =", anchor="start", color=VIOLET, bold=True)
        sheet.strip(130, y, layer.forward[:14])
        sheet.text(292, y + 14, "…", color=TEAL)
        sheet.strip(304, y, layer.backward[:14])
        sheet.text(466, y + 14, "…", color=ORANGE)
        sheet.text(130, y + 34, "→" if index else "x", anchor="start", color=TEAL, size=11)
        sheet.text(304, y + 34, "←" if index else "x", anchor="start", color=ORANGE, size=11)
        sheet.text(500, y + 14, f"· s{'₀₁₂'[index]}", color=VIOLET, bold=True)
        sheet.arrow(524, y + 9, 566, 92 + (1 - index) * 8, color=VIOLET)
    sheet.box(570, 70, 64, 44, "Σ · γ", color=VIOLET, size=16)
    sheet.arrow(636, 92, 664, 92, color=VIOLET)
    sheet.text(692, 97, "ELMo", color=VIOLET, bold=True)
    sheet.text(610, 152, f"s, γ: {words['task']}", size=12)
    sheet.text(360, 226, words["mixture"], color=VIOLET, size=17, bold=True)
    sheet.save(name)


def task(sentence: list[str], words: dict[str, str], name: str) -> None:
    """Draw how a task model reads ELMo beside its own word vectors."""
    sheet = Drawing(720, 230, f"[x; ELMo] → {words['model']}")
    for x in (135, 357):
        sheet.text(x, 200, " ".join(sentence), size=15, bold=True)
    sheet.box(40, 110, 190, 46, words["frozen"], color=VIOLET)
    sheet.arrow(135, 182, 135, 158)
    sheet.arrow(135, 109, 135, 72, color=VIOLET)
    sheet.box(40, 30, 190, 40, "Σ s h · γ", color=VIOLET, size=15)
    sheet.box(262, 110, 190, 46, words["vector"], size=13)
    sheet.arrow(357, 182, 357, 158)
    sheet.arrow(232, 50, 258, 50, color=VIOLET)
    sheet.arrow(357, 109, 357, 72)
    sheet.box(262, 30, 190, 40, "[x ; ELMo]", size=15)
    sheet.arrow(454, 50, 484, 50)
    sheet.box(488, 30, 120, 40, words["model"], color=BLUE)
    sheet.arrow(610, 50, 636, 50, color=GRAY)
    sheet.text(668, 55, words["answer"], bold=True)
    sheet.text(548, 92, words["task"], size=12)
    sheet.save(name)


def main() -> None:
    """Draw all parts in both languages."""
    FOLDER.mkdir(exist_ok=True)
    for language, words in TEXTS.items():
        sentence = SENTENCES[language]
        model = elmokit.load_model(language)
        trace = elmokit.trace(model, sentence, word=sentence.index(WORDS[language]))
        characters(trace, words, f"elmo-characters-{language}.svg")
        char_cnn(trace, words, f"elmo-char-cnn-{language}.svg")
        two_lstms(sentence, words, f"elmo-two-lstms-{language}.svg")
        mixture(trace, words, f"elmo-mixture-{language}.svg")
        task(sentence, words, f"elmo-task-{language}.svg")


if __name__ == "__main__":
    main()
