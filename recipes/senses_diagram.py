"""Draw one word's vectors in three sentences, layer by layer: docs/images/elmo-senses-LANGUAGE.svg.

    python recipes/senses_diagram.py

The points are as far apart as the unit vectors of the packaged model are, by the cosines that
`explorer_packs.py` has written. Nothing is measured in the other pictures of that folder: edit
their SVG, which has an element on each line.
"""

import json
from html import escape
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
FIRST = ROOT / "src/elmokit/web/page/static/packs/first.js"
TEAL, ORANGE, VIOLET, GRAY = "#0f9488", "#d9730d", "#8b5cf6", "#7b8494"
"""Colors that can be read on light and dark pages."""
COLORS = (TEAL, TEAL, ORANGE)
"""Of the three sentences; the first two have the same sense."""
LAYERS = {"en": "layer {}", "ko": "{}층"}
FONT = "system-ui, 'Noto Sans', 'Noto Sans KR', 'Apple SD Gothic Neo', sans-serif"


def text(
    x: float, y: float, words: str, *, color: str = GRAY, size: int = 14, anchor: str = "start",
    bold: bool = False,
) -> str:  # fmt: skip
    """Return words; ``y`` is their base line."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{color}" font-size="{size}" '
        f'text-anchor="{anchor}"{weight}>{escape(words)}</text>'
    )


def box(x: float, y: float, width: float, height: float, color: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" '
        f'fill="{color}" fill-opacity="0.14" stroke="{color}"/>'
    )


def dot(x: float, y: float, words: str, color: str, radius: float = 11) -> list[str]:
    """Return a full circle with words in it."""
    return [
        f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{radius:g}" fill="{color}"/>',
        text(round(x), round(y) + 4, words, color="#fff", size=13, anchor="middle", bold=True),
    ]


def draw(language: str) -> str:
    """Return the SVG of a language."""
    view = json.loads(FIRST.read_text(encoding="utf-8").partition("=")[2])[language]
    parts = [f"<title>{escape(' / '.join(one['text'] for one in view['sentences']))}</title>"]
    for number, (sentence, color) in enumerate(zip(view["sentences"], COLORS, strict=True)):
        y = 40 + number * 48
        parts += [
            box(16, y - 20, 28, 28, color),
            text(30, y - 1.1, str(number + 1), color=color, anchor="middle", bold=True),
            text(54, y, sentence["text"], size=15),
            text(54, y + 18, sentence["sense"][language], size=12, color=color),
        ]
    places = np.stack([triangle(cosines) for cosines in view["cosines"]])  # (L, 3, 2)
    places *= 46 / np.abs(places).max()
    for layer, points in enumerate(places):
        x = 75 + layer * 140
        name = LAYERS[language].format(layer)
        parts += [
            box(x - 65, 172, 130, 138, GRAY),
            text(x, 336, name, color=VIOLET, anchor="middle", bold=True),
        ]
        if np.abs(points).max() < 0.5:
            parts += dot(x, 241, "1 2 3", VIOLET, radius=20)
            continue
        for number in (2, 1, 0):
            dx, dy = points[number]
            parts += dot(x + dx, 241 + dy, str(number + 1), COLORS[number])
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="430" height="350" viewBox="0 0 430 350" '
        f'font-family="{FONT}" role="img">'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def triangle(cosines: list[float]) -> np.ndarray:
    """Return three points (3, 2) as far apart as unit vectors with the cosines 1-2, 1-3 and 2-3."""
    a, b, c = (np.sqrt(max(0.0, 2 - 2 * one)) for one in cosines)
    x = (a * a + b * b - c * c) / (2 * b) if b else 0.0
    points = np.array([[0.0, 0.0], [x, -np.sqrt(max(0.0, a * a - x * x))], [b, 0.0]])
    return points - points.mean(axis=0)


if __name__ == "__main__":
    for language in LAYERS:
        path = ROOT / f"docs/images/elmo-senses-{language}.svg"
        path.write_text(draw(language), encoding="utf-8")
