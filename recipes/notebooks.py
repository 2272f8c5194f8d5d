"""Write the lessons of the course as Jupyter notebooks.

    python recipes/notebooks.py

The lessons are docs/course and docs/ko/course, the notebooks examples/course/en and ko: the same
text and code, without outputs. A test holds them equal; the code is run as that of the lessons.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmokit.files.atomic import atomic_file

ROOT = Path(__file__).parents[1]
LESSONS = {"en": ROOT / "docs/course", "ko": ROOT / "docs/ko/course"}
NOTEBOOKS = ROOT / "examples/course"
CODE = re.compile(r"^```python\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^):#]+\.(?:md|svg))")


def notebook(lesson: Path, folder: Path) -> str:
    """Return the JSON of a lesson's notebook that is to lie in ``folder``."""

    def from_folder(link: re.Match[str]) -> str:
        return f"]({Path(os.path.relpath(lesson.parent / link[1], folder)).as_posix()}"

    parts = CODE.split(lesson.read_text(encoding="utf-8"))  # text, code, text, …
    cells = []
    for number, part in enumerate(parts):
        source = part.strip("\n")
        if not source:
            continue
        cell: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}}
        if number % 2:
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
        else:
            cell |= {"cell_type": "markdown"}
            source = LINK.sub(from_folder, source)
        cells.append({**cell, "source": source.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, ensure_ascii=False, indent=1) + "\n"


def notebooks() -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each notebook."""
    for language, folder in LESSONS.items():
        for lesson in sorted(folder.glob("[0-9]*.md")):
            path = NOTEBOOKS / language / f"{lesson.stem}.ipynb"
            yield path, notebook(lesson, path.parent)


if __name__ == "__main__":
    for path, text in notebooks():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            file.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
