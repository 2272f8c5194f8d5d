"""Every command reads the same text from every kind of file."""

import json

import pytest

from ..builders.command_line import elmokit

TEXTS = [
    "The bank of the river was wet.",
    "She opened the bank.",
    "It rained, and the bank closed.",
]
SUFFIXES = (".txt", ".jsonl", ".csv", ".tsv", ".parquet")
COMMANDS = {
    "perplexity": lambda path, _, *column: ("perplexity", "en", path, "--json", *column),
    "surprisal": lambda path, _, *column: ("surprisal", "en", path, "--json", *column),
    "predict": lambda path, _, *column: ("predict", "pos-en", path, *column),
    "neighbors": lambda path, _, *column: ("neighbors", path, "--word", "bank", "-k", 1, *column),
    "embed": lambda path, folder, *column: (
        "embed", path, "-o", folder / f"{path.suffix[1:]}.npz", "--json", *column
    ),
    "pretrain": lambda path, folder, *column: (
        "pretrain", path, "-o", folder / path.suffix[1:], "--preset", "toy", "--tokens", 50,
        "--json", "--set", "train.batch_size=2", "--set", "train.unroll_steps=3", *column,
    ),
}  # fmt: skip
OWN = ("file", "path", "output", "model_dir", "line", "seconds", "words_per_second", "metadata",
       "tokens_per_second", "progress", "skipped")  # fmt: skip


def write(path, name="body"):
    """Write the texts with another column beside theirs."""
    rows = [{"n": str(number), name: text} for number, text in enumerate(TEXTS)]
    if path.suffix == ".parquet":
        arrow, parquet = (pytest.importorskip(f"pyarrow{part}") for part in ("", ".parquet"))
        parquet.write_table(arrow.Table.from_pylist(rows), path)
        return path
    lines = {
        ".txt": TEXTS,
        ".jsonl": map(json.dumps, rows),
        ".csv": [f"n,{name}", *(f'{row["n"]},"{row[name]}"' for row in rows)],
        ".tsv": [f"n\t{name}", *("\t".join(row.values()) for row in rows)],
    }[path.suffix]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def answer_of(printed):
    """Return what a command printed, without names of files and times."""
    lines = printed.stdout.splitlines()
    if not lines[0].startswith("{"):
        return lines
    return [
        {name: value for name, value in json.loads(line).items() if name not in (*OWN, "n")}
        for line in lines
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_all_kinds_of_files_are_read_alike(command, tmp_path):
    answers = {}
    for suffix in SUFFIXES:
        path = write(tmp_path / f"a{suffix}")
        column = () if suffix == ".txt" else ("--column", "body")
        answers[suffix] = answer_of(elmokit(*COMMANDS[command](path, tmp_path, *column)))
    assert all(answer == answers[".txt"] for answer in answers.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_is_not_read_as_prose(command, tmp_path):
    table = write(tmp_path / "a.csv").rename(tmp_path / "table.txt")
    assert "--column" in elmokit(*COMMANDS[command](table, tmp_path), expect=2).stderr
    elmokit(*COMMANDS[command](table, tmp_path, "--column", "body"))
