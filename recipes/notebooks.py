"""Run the lessons of the course, and write them as Jupyter notebooks.

    python recipes/notebooks.py              # the notebooks of the lessons as they stand
    python recipes/notebooks.py --outputs    # run the lessons, put what cells print below them

The lessons are docs/course and docs/ko/course, the notebooks examples/course/en and ko: the same
text, code and outputs. Tests hold them equal, run the code and compare what it prints.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LESSONS = {"en": ROOT / "docs/course", "ko": ROOT / "docs/ko/course"}
NOTEBOOKS = ROOT / "examples/course"
CELL = re.compile(
    r"(?P<answer><details.*?</details>)"
    r"|^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
"""Code with its output; answers of exercises stay text as a whole."""
CODE = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^):#]+\.(?:md|svg|png))")


def notebook(lesson: Path, folder: Path) -> str:
    """Return the JSON of a lesson's notebook that is to lie in ``folder``."""
    cells: list[dict[str, Any]] = []

    def add(kind: str, source: str, **fields: Any) -> None:
        if source := source.strip("\n"):
            cell = {"id": f"cell-{len(cells)}", "metadata": {}, "cell_type": kind, **fields}
            cells.append({**cell, "source": source.splitlines(keepends=True)})

    def from_folder(link: re.Match[str]) -> str:
        return f"]({Path(os.path.relpath(lesson.parent / link[1], folder)).as_posix()}"

    page = lesson.read_text(encoding="utf-8")
    begin = 0
    for match in CELL.finditer(page):
        if match["code"] is None:
            continue
        add("markdown", LINK.sub(from_folder, page[begin : match.start()]))
        begin, outputs = match.end(), []
        if match["output"]:
            lines = match["output"].splitlines(keepends=True)
            outputs = [{"name": "stdout", "output_type": "stream", "text": lines}]
        add("code", match["code"], execution_count=None, outputs=outputs)
    add("markdown", LINK.sub(from_folder, page[begin:]))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, ensure_ascii=False, indent=1) + "\n"


def with_outputs(page: str) -> str:
    """Run the code of a lesson in an empty folder and write below each cell what it prints."""
    namespace: dict[str, Any] = {}

    def run(match: re.Match[str]) -> str:
        if match["code"] is None:
            for code in CODE.findall(match["answer"]):
                run_cell(code, namespace)
            return match[0]
        output = run_cell(match["code"], namespace)
        return f"```python\n{match['code']}```\n" + (f"\n```text\n{output}```\n" if output else "")

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return CELL.sub(run, page)


def run_cell(code: str, namespace: dict[str, Any]) -> str:
    """Run the code of a cell and return what it prints."""
    with redirect_stdout(StringIO()) as printed:
        exec(compile(code, "a lesson", "exec"), namespace)
    return printed.getvalue()


def lessons() -> Iterator[tuple[Path, Path]]:
    """Yield the paths of each lesson and of its notebook."""
    for language, folder in LESSONS.items():
        for lesson in sorted(folder.glob("[0-9]*.md")):
            yield lesson, NOTEBOOKS / language / f"{lesson.stem}.ipynb"


def notebooks() -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each notebook."""
    for lesson, path in lessons():
        yield path, notebook(lesson, path.parent)


if __name__ == "__main__":
    if "--outputs" in sys.argv[1:]:
        for lesson, _ in lessons():
            lesson.write_text(with_outputs(lesson.read_text("utf-8")), "utf-8")
    for path, text in notebooks():
        path.write_text(text, "utf-8")
