"""The examples of the guide to other libraries run wherever the library is installed."""

import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

from .test_documents import FENCE

ROOT = Path(__file__).parents[2]
NOTE = re.compile(r"where (\S+) is")
MODULES = {"scikit-learn": "sklearn", "sentence-transformers": "sentence_transformers",
           "spaCy": "spacy"}  # fmt: skip
PAGES = ["docs/guides/integrations.md", "docs/ko/guides/integrations.md"]


def examples(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    return {
        NOTE.search(match["note"])[1]: match["code"]
        for match in FENCE.finditer(text)
        if match["language"] == "python"
    }


@pytest.fixture
def here(workplace, tmp_path, monkeypatch):
    for path in workplace.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", examples(PAGES[0]))
def test_the_example_runs(name, here, monkeypatch, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library, while it is imported
        pytest.importorskip(MODULES.get(name, name), reason=f"{name} is not installed")
        if "words.parquet" in examples(PAGES[0])[name]:
            pytest.importorskip("pyarrow", reason="pyarrow is not installed")
            index(monkeypatch, "text.txt", "-o", "words.parquet", "--model", "model")
        exec(compile(examples(PAGES[0])[name], name, "exec"), {})
    assert capsys.readouterr().out or name in {"sentence-transformers", "transformers"}


def test_both_pages_have_the_same_examples():
    english, korean = map(examples, PAGES)
    without_comments = [
        {name: re.sub(r"  # .*", "", code) for name, code in page.items()}
        for page in (english, korean)
    ]
    assert without_comments[0] == without_comments[1]


def index(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["word_index.py", *arguments])
    runpy.run_path(str(ROOT / "recipes/word_index.py"), run_name="__main__")


def test_the_recipe_keeps_chosen_words_and_counts(here, monkeypatch, capsys):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    index(
        monkeypatch, "text.txt", "-o", "words.parquet", "--model", "model", "--words", "bank", "배"
    )
    table = parquet.read_table("words.parquet")
    text = Path("text.txt").read_text(encoding="utf-8").splitlines()
    expected = [word for line in text for word in line.split() if word in {"bank", "배"}]
    assert table["word"].to_pylist() == expected
    assert f"{len(expected)} rows" in capsys.readouterr().out
