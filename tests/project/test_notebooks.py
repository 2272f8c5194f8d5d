"""The notebooks of the course are its lessons; `test_documents` runs the code of the lessons."""

import importlib.util
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


def test_links_of_the_notebooks_lead_somewhere(recipe):
    for path, text in recipe.notebooks():
        for target in re.findall(r"\]\(([^)#:]+\.md)", text):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
