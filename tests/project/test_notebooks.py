"""The notebooks of the course are its lessons; `test_documents` runs the code of the lessons."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "recipes/notebooks.py")
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    return recipe


def test_the_notebooks_are_those_of_the_lessons(recipe):
    made = dict(recipe.notebooks())
    assert len(made) == 20
    assert set(made) == set(recipe.NOTEBOOKS.rglob("*.ipynb"))
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"run recipes/notebooks.py: {path.name}"


def test_a_notebook_has_the_cells_of_a_lesson_and_its_links(recipe, tmp_path):
    (tmp_path / "docs/course").mkdir(parents=True)
    lesson = tmp_path / "docs/course/01-a.md"
    lesson.write_text(
        "# 1\n\nSee [b](../b.md#c), [d](http://d/e.md).\n\n```python\nx = 1\n\nx\n```\n\n"
        "```\ny = x\n```\n\n```python\nx = 2\n```\n",
        encoding="utf-8",
    )
    made = json.loads(recipe.notebook(lesson, tmp_path / "examples/course/en"))
    assert [cell["cell_type"] for cell in made["cells"]] == ["markdown", "code"] * 2
    sources = ["".join(cell["source"]) for cell in made["cells"]]
    assert sources[0] == "# 1\n\nSee [b](../../../docs/b.md#c), [d](http://d/e.md)."
    assert sources[1:] == ["x = 1\n\nx", "```\ny = x\n```", "x = 2"]
    assert all(cell["outputs"] == [] for cell in made["cells"] if cell["cell_type"] == "code")
    assert len({cell["id"] for cell in made["cells"]}) == 4


def test_links_of_the_notebooks_lead_somewhere(recipe):
    for path, text in recipe.notebooks():
        for target in re.findall(r"\]\(([^)#:]+\.md)", text):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
