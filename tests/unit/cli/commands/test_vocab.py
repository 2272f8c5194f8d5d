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


def test_counts_and_writes(run, corpus, tmp_path):
    output = tmp_path / "vocab.txt"
    result = run(corpus, "-o", output, "--max-size", 3)
    assert result.exit_code == 0, result.stderr
    assert output.read_text() == "<S>\n</S>\n<UNK>\nThe\n.\ndid\n"
    assert "12 words in 3 sentences" in result.stdout
    assert "58.33%" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--min-count", 100), "No word occurs at least 100 times"),
        (("--max-characters", 20), "--max-characters is for --check"),
    ],
)
def test_nothing_is_written_for_options_that_leave_nothing(
    run, corpus, tmp_path, arguments, message
):
    output = tmp_path / "vocab.txt"
    result = run(corpus, "-o", output, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not output.exists()


def test_a_check_takes_no_limits_of_a_new_vocabulary(run, corpus):
    result = run(corpus, "--check", corpus, "--max-size", 3)
    assert result.exit_code == 2
    assert "are for writing a vocabulary" in result.stderr


def test_json_has_the_facts(run, corpus, tmp_path):
    output = tmp_path / "vocab.txt"
    result = run(corpus, "-o", output, "--min-count", 2, "--tokenizer", "whitespace", "--json")
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


def test_the_doctor_finds_nothing_in_its_own_vocabulary(run, corpus, tmp_path):
    output = tmp_path / "vocab.txt"
    run(corpus, "-o", output)
    result = run("--check", output, corpus, "--max-characters", 5)
    assert result.exit_code == 0
    assert "no problem found" in result.stdout
    assert "coverage       100.00%" in result.stdout
    report = json.loads(run("--check", output, corpus, "--json").stdout)
    assert report["corpus"]["is_sorted"] is True
    assert report["errors"] == []


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


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.jsonl", '{"id": "x", "body": "The end"}\n'), ("a.csv", "id,body\nx,The end\n")],
)
def test_the_field_with_the_text_is_an_option(run, tmp_path, name, text):
    path, output = tmp_path / name, tmp_path / "vocab.txt"
    path.write_text(text, encoding="utf-8")
    assert run(path, "-o", output, "--text-field", "body").exit_code == 0
    assert output.read_text().splitlines()[3:] == ["The", "end"]
    checked = json.loads(run(path, "--check", output, "--text-field", "body", "--json").stdout)
    assert checked["corpus"]["coverage"] == 1


def test_what_is_there_is_replaced_only_if_asked_for(run, corpus, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("precious")
    result = run(corpus, "-o", notes)
    assert result.exit_code == 2
    assert "notes.txt exists already. Replace it with --overwrite" in result.stderr
    assert notes.read_text() == "precious"
    assert run(corpus, "-o", notes, "--overwrite").exit_code == 0
    assert notes.read_text().startswith("<S>\n")


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
@pytest.mark.parametrize("name", ["corpus.txt", "link.txt"])
def test_the_corpus_is_never_replaced(run, corpus, options, name):
    (corpus.parent / "link.txt").symlink_to(corpus)
    before = corpus.read_bytes()
    result = run(corpus.parent, "-o", corpus.parent / name, *options)
    assert result.exit_code == 2
    assert f"{name} is read by this command" in result.stderr
    assert corpus.read_bytes() == before


def test_a_vocabulary_that_is_not_there_is_named(run, corpus, tmp_path):
    result = run("--check", tmp_path / "none.txt")
    assert result.exit_code == 2
    assert "There is no vocabulary" in result.stderr
    assert "a file with one word per line is expected" in result.stderr


def test_a_sick_vocabulary_is_exit_code_2(run, tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("<S>\n</S>\na\na\n")
    result = run("--check", path)
    assert result.exit_code == 2
    assert "ERROR          <UNK> is missing" in result.stdout
    assert "'a' (lines 3, 4)" in result.stdout


@pytest.mark.parametrize("arguments", [(), ("-o", "v.txt", "--check", "v.txt"), ("-o", "v.txt")])
def test_half_a_command_is_refused(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "vocab needs" in result.stderr


def test_an_unknown_tokenizer_is_refused_before_anything_is_written(run, corpus, tmp_path):
    result = run(corpus, "-o", tmp_path / "v.txt", "--tokenizer", "moses")
    assert result.exit_code == 2
    assert "no tokenizer 'moses'" in result.stderr
    assert not (tmp_path / "v.txt").exists()
