"""Every command reads the same text from every kind of file."""

import json

import pytest

from ..builders.command_line import elmokit

TEXTS = [
    "The bank of the river was wet.",
    "She opened the bank.",
    "It rained, and the bank closed.",
]
COMMANDS = {
    "perplexity": "perplexity en {path} --json",
    "surprisal": "surprisal en {path} --json",
    "predict": "predict pos-en {path}",
    "neighbors": "neighbors {path} --word bank -k 1",
    "embed": "embed {path} -o {output}.npz --json",
    "pretrain": "pretrain {path} -o {output} --preset toy --tokens 50 --json "
                "--set train.batch_size=2 --set train.unroll_steps=3",
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


def run(command, path, *column, **options):
    """Run a command on a file; what it writes gets the name of the kind of file."""
    words = COMMANDS[command].format(path=path, output=path.with_name(path.suffix[1:]))
    return elmokit(*words.split(), *column, **options)


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
def test_all_kinds_of_files_are_read_alike_and_no_json_as_prose(command, tmp_path):
    expected = answer_of(run(command, write(tmp_path / "a.txt")))
    for suffix in (".jsonl", ".csv", ".tsv", ".parquet"):
        path = write(tmp_path / f"a{suffix}")
        assert answer_of(run(command, path, "--column", "body")) == expected
    lines = write(tmp_path / "b.jsonl").rename(tmp_path / "lines.text")
    assert "--column" in run(command, lines, expect=2).stderr
    assert answer_of(run(command, lines, "--column", "body")) == expected
