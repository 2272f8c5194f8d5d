"""Draw the pictures of the course that show numbers of the packaged models, in both languages.

    python recipes/diagrams.py

Writes elmo-char-cnn, elmo-mixture and elmo-senses in docs/images. The other pictures there have no
numbers of a model: edit their SVG, which has an element on each line. Forward is teal, backward
orange, both together violet, as in the explorer. All colors are readable on light and dark pages.
"""

import json
from html import escape
from pathlib import Path

import numpy as np

import elmokit
from elmokit.inspection.trace import WordTrace

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/images"
FIRST = ROOT / "src/elmokit/web/page/static/packs/first.js"
GRAY, TEAL, ORANGE, VIOLET, BLUE = "#7b8494", "#0f9488", "#d9730d", "#8b5cf6", "#3b82c4"
FONT = "system-ui, 'Noto Sans', 'Noto Sans KR', 'Apple SD Gothic Neo', sans-serif"
SENTENCES = {"en": ["They", "sat", "on", "the", "bank"], "ko": ["우리", "는", "배", "를", "타"]}
WORDS = {"en": "bank", "ko": "배"}
MIXTURE = "ELMo = γ · (s₀ h₀ + s₁ h₁ + s₂ h₂)"
TEXTS = {
    "en": {
        "embedding": "a vector for each character",
        "filters": "filters slide over the characters",
        "pooling": "max pooling: the largest answer",
        "highway": "highway", "projection": "projection", "token": "token vector x",
        "gate": "gate", "layer": "layer {}", "task": "learned by the task",
    },
    "ko": {
        "embedding": "문자마다 벡터 하나",
        "filters": "필터가 문자열을 훑음", "pooling": "맥스 풀링: 가장 큰 반응값만",
        "highway": "하이웨이", "projection": "투영", "token": "토큰 벡터 x",
        "gate": "게이트", "layer": "{}층", "task": "과제에서 학습",
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


def mixture(trace: WordTrace, words: dict[str, str], name: str) -> None:
    """Draw the sum of a word's layers."""
    sheet = Drawing(720, 250, MIXTURE)
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
    sheet.text(360, 226, MIXTURE, color=VIOLET, size=17, bold=True)
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


def main() -> None:
    """Draw all parts in both languages."""
    for language, words in TEXTS.items():
        sentence = SENTENCES[language]
        model = elmokit.load_model(language)
        trace = elmokit.trace(model, sentence, word=sentence.index(WORDS[language]))
        char_cnn(trace, words, f"elmo-char-cnn-{language}.svg")
        mixture(trace, words, f"elmo-mixture-{language}.svg")
        senses(language, words, f"elmo-senses-{language}.svg")


if __name__ == "__main__":
    main()
