"""The examples and the quickstart run, as a user would run them."""

import runpy
import shlex
import sys
from pathlib import Path

import pytest

import elmokit

from ..builders.command_line import elmokit as run_elmokit

ROOT = Path(__file__).parents[2]
ARGUMENTS = {
    "elmo": ["model"],
    "embed_sentences": ["model"],
    "elmo_in_a_classifier": ["model"],
    "load_original_weights": ["options.json", "weights.hdf5", "from-original"],
}


def test_every_example_is_tested():
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == set(ARGUMENTS)


@pytest.mark.e2e
@pytest.mark.parametrize("name", ARGUMENTS)
def test_examples_run(name, workplace, monkeypatch, capsys):
    program = str(ROOT / f"examples/{name}.py")
    monkeypatch.chdir(workplace)
    monkeypatch.setattr(sys, "argv", [program, *ARGUMENTS[name]])
    runpy.run_path(program, run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.e2e
@pytest.mark.parametrize(("name", "readme"), [("en", "README.md"), ("ko", "README.ko.md")])
def test_the_first_example_tells_two_senses_apart(name, readme):
    """The packaged models bear the claim of the first page, and it quotes the program's numbers."""
    example = runpy.run_path(str(ROOT / "examples/embed_sentences.py"))
    word, sentences = example["KOREAN" if name == "ko" else "ENGLISH"]
    same, *others = example["cosines"](elmokit.Embedder.load(name), word, sentences)
    assert same - max(others) >= 0.15
    page = (ROOT / readme).read_text(encoding="utf-8")
    assert all(f"{cosine:.2f}" in page for cosine in (same, *others))
    quoted = [sentence for sentence in sentences if f'"{sentence}"' in page]
    assert len(quoted) == 2
    assert sentences[2] in quoted


@pytest.mark.e2e
def test_the_quickstart_runs_from_text_to_vectors(tmp_path, monkeypatch):
    """The `elmokit` commands of docs/quickstart.md, in order, on a small text."""
    import h5py

    sentences = [
        "The boat lay by the bank .",
        "The bank lent me money .",
        "배 를 타고 섬 에 갔다 .",
    ]
    (tmp_path / "corpus.txt").write_text("\n".join(sentences * 100) + "\n", encoding="utf-8")
    for name in ("heldout.txt", "text.txt"):
        (tmp_path / name).write_text("\n".join(sentences) + "\n", encoding="utf-8")
    page = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8")
    commands = [line for line in page.splitlines() if line.startswith("elmokit ")]
    assert [command.split()[1] for command in commands] == ["pretrain", "perplexity", "embed"]
    monkeypatch.chdir(tmp_path)
    for command in commands:
        run_elmokit(*shlex.split(command)[1:])
    with h5py.File(tmp_path / "vectors.h5") as file:
        assert file["0"].shape[:2] == (3, 7)
