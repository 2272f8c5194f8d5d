"""The examples run, as a user would run them, and show what the first page says."""

import runpy
import sys

import pytest

import elmokit

from .test_documents import ROOT, read

pytestmark = pytest.mark.e2e
ARGUMENTS = {
    "elmo": ["model"],
    "embed_sentences": ["model"],
}


def test_every_example_runs(workplace, monkeypatch, capsys):
    programs = {path.stem: path for path in (ROOT / "examples").glob("*.py")}
    assert programs.keys() == ARGUMENTS.keys()
    monkeypatch.chdir(workplace)
    for name, program in programs.items():
        monkeypatch.setattr(sys, "argv", [str(program), *ARGUMENTS[name]])
        runpy.run_path(str(program), run_name="__main__")
        assert capsys.readouterr().out


@pytest.mark.parametrize(("name", "readme"), [("en", "README.md"), ("ko", "README.ko.md")])
def test_the_first_example_tells_two_senses_apart(name, readme):
    """The packaged models bear the claim of the first page, and it quotes the program's numbers."""
    example = runpy.run_path(str(ROOT / "examples/embed_sentences.py"))
    word, sentences = example["KOREAN" if name == "ko" else "ENGLISH"]
    same, *others = example["cosines"](elmokit.Embedder.load(name), word, sentences)
    assert same - max(others) >= 0.15
    page = read(readme)
    assert all(f"{cosine:.2f}" in page for cosine in (same, *others))
    quoted = [sentence for sentence in sentences if f'"{sentence}"' in page]
    assert len(quoted) == 2
    assert sentences[2] in quoted
