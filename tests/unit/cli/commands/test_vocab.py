import json

import pytest
from typer.testing import CliRunner

import elmokit


@pytest.fixture
def run():
    from elmokit import cli

    return lambda *arguments: CliRunner().invoke(cli.app, ["vocab", *map(str, arguments)])


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("The cat didn't sit. The dog did.\n\nThe end\n", encoding="utf-8")
    return path


def test_json_has_the_facts(run, corpus, tmp_path):
    output = tmp_path / "vocab.txt"
    run(corpus, "-o", output, "--max-size", 3, "--language", "en")
    assert output.read_text() == "<S>\n</S>\n<UNK>\nThe\n.\ndid\n"
    settings = "--min-count", 2, "--tokenizer", "whitespace", "--overwrite"
    result = run(corpus, "-o", output, *settings, "--json")
    assert json.loads(result.stdout) == {
        "path": str(output),
        "size": 4,
        "sentences": 2,
        "words": 9,
        "coverage": pytest.approx(1 / 3),
        "skipped": {"blank": 1},
        "tokenizer": {"name": "whitespace", "version": "1"},
        "normalization": "plain-1",
        "elmokit_version": elmokit.__version__,
    }


def test_special_words_in_the_corpus_are_told(run, tmp_path):
    marked, output = tmp_path / "marked.txt", tmp_path / "vocab.txt"
    marked.write_text("<s> The end . </s>\n" * 3, encoding="utf-8")
    written = run(marked, "-o", output, "--tokenizer", "whitespace")
    checked = run("--check", output, marked, "--tokenizer", "whitespace")
    for result in (written, checked):
        assert result.exit_code == 0
        assert "3 of 3 lines" in result.stderr
        assert "<s> 3" in result.stderr
    assert "no problem found" not in checked.stdout
    assert "<s>" in checked.stdout


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
@pytest.mark.parametrize("name", ["corpus.txt", "link.txt"])
def test_the_corpus_is_never_replaced(run, corpus, options, name):
    (corpus.parent / "link.txt").symlink_to(corpus)
    before = corpus.read_bytes()
    result = run(corpus.parent, "-o", corpus.parent / name, *options)
    assert result.exit_code == 2
    assert f"{name} is read by this command" in result.stderr
    assert corpus.read_bytes() == before


def test_a_sick_vocabulary_is_exit_code_2(run, tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("<S>\n</S>\na\na\n")
    result = run("--check", path)
    assert result.exit_code == 2
    assert "ERROR          <UNK> is missing" in result.stdout
    assert "'a' (lines 3, 4)" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "vocab needs"),
        (("-o", "v.txt"), "vocab needs"),
        (("-o", "v.txt", "--check", "v.txt"), "vocab needs"),
        (("corpus.txt", "-o", "v.txt", "--min-count", 100), "100 times"),
        (("corpus.txt", "-o", "v.txt", "--max-characters", 20), "--max-characters"),
        (("corpus.txt", "-o", "v.txt", "--tokenizer", "moses"), "'moses'"),
        (("corpus.txt", "--check", "corpus.txt", "--max-size", 3), "--max-size"),
        (("--check", "none.txt"), "none.txt"),
    ],
)
def test_wrong_input_is_told_and_nothing_written(run, corpus, monkeypatch, arguments, message):
    monkeypatch.chdir(corpus.parent)
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert [path.name for path in corpus.parent.iterdir()] == ["corpus.txt"]
