"""Wrong input of every command: one message that names it, exit code 2, and nothing written."""

import socket

import pytest

from elmokit.corpus.shards import write_shards

from ..builders.command_line import elmokit
from ..builders.training_models import toy_model

pytestmark = pytest.mark.e2e

EMBED = "embed text.txt -o o.h5 -m MODEL"
VECTORS = "vectors few.txt -o v.bin"
PRETRAIN = "pretrain text.txt -o run --tokenizer whitespace"
SERVE = "serve --port 0 --model MODEL"
EXPLORE = "explore -m MODEL"
ROWS = {
    "bench nothing text.txt": "nothing",
    "bench MODEL text.txt --precision fp64": "fp64",
    "change . text.txt -o text.txt --overwrite": "is read by this command",
    "convert nothing out": "nothing",
    "convert MODEL MODEL --overwrite": "is read by this command",
    "demo --language fr": "'fr'",
    "embed bad.txt -o o.h5 -m MODEL": "bad.txt, line 2",
    "embed text.txt -o old.h5 -m none": "old.h5 exists already",
    f"{EMBED} --shard one": "--shard",
    f"{EMBED} --layers bottom": "'bottom'",
    f"{EMBED} --precision int4": "fp32, bf16, int8, got 'int4'",
    f"{EMBED} --engine spark": "'spark'",
    f"{EMBED} --address auto": "--engine ray",
    f"{EMBED} --engine ray --device cuda": "--gpus",
    "evaluate none text.txt": "'none'",
    "evaluate RUN few.txt": "few.txt",
    f"{EXPLORE} --run .": "no run",
    f"{EXPLORE} --json": "--json",
    f"{EXPLORE} --port PORT": "--port",
    f"{EXPLORE} --export site --open": "--open",
    f"{EXPLORE} --export site --run .": "--run",
    f"{EXPLORE} --export full": "not empty",
    "finetune MODEL text.txt -o tuned --units morphemes": "--task",
    "info nothing": "nothing",
    "info notes.json": "notes.json",
    "neighbors x --word a --sentence a --show 2": "--sentence",
    "neighbors x --word a --any-word": "--sentence",
    "neighbors text.txt --word a --sentence b -m MODEL": "'a'",
    "neighbors text.txt --word a --layers all -m MODEL": "`layers`",
    "perplexity MODEL empty.txt": "empty.txt",
    "plot full": "no run",
    "predict RUN zero.txt": "zero.txt",
    "predict RUN long.txt": "long.txt, line 2",
    "predict-word MODEL the --insert": "--word",
    f"{PRETRAIN} --set train.bach_size=4": "batch_size",
    f"{PRETRAIN} --set train.batch_size=many": "train.batch_size",
    "pretrain cp949.txt -o run": "cp949.txt",
    "pretrain empty.txt -o run": "no text",
    "pretrain text.txt -o run --column none": 'column called "none"',
    "pretrain few.txt -o run --tokenizer whitespace --set vocab.min_count=1": "batch",
    "probe syntax --data x": "'syntax'",
    f"{SERVE} --layers all": "average",
    f"{SERVE} --task MODEL": "run",
    f"{SERVE} --task RUN --task run=RUN": "run",
    "serve --port 0 --model nowhere": "nowhere",
    "surprisal MODEL": "neither",
    "surprisal MODEL text.txt --text the": "both",
    "surprisal MODEL bad.txt -o x.tsv": "bad.txt",
    "surprisal MODEL text.txt -o text.txt --overwrite": "text.txt",
    "surprisal MODEL text.txt --overwrite": "-o",
    "surprisal BARE --text the": "softmax",
    "tokenize MODEL --text a\0b": "NUL",
    "trace MODEL the --word 7": "0:the",
    "trace MODEL the --weights 0.2;1": "0.2;1",
    "track full": "full",
    "train verse -o x": "'verse'",
    "train pos -o x": "--data",
    "train pos -o x --embeddings glove": "--embeddings",
    "vocab": "vocab needs",
    "vocab -o v.txt --check v.txt": "vocab needs",
    "vocab text.txt -o v.txt --min-count 100": "100 times",
    "vocab text.txt -o v.txt --max-characters 20": "--max-characters",
    "vocab text.txt -o v.txt --tokenizer moses": "'moses'",
    "vocab text.txt --check text.txt --max-size 3": "--max-size",
    "vocab --check none.txt": "none.txt",
    "vocab text.txt -o text.txt --overwrite": "text.txt is read by this command",
    "vectors none.txt -o v.bin": "'none.txt'",
    "vectors shards -o v.bin": "shard-00000.bin: damaged",
    "vectors utf16.txt -o v.bin": "utf16.txt",
    f"{VECTORS} --buckets 9": "--kind fasttext",
    "vectors few.txt -o few.txt --overwrite": "few.txt",
    "weights x --overwrite": "--plot",
}  # fmt: skip
"""A command -> what its message names. Words in capitals stand for paths."""


@pytest.fixture(scope="module")
def folder(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    toy_model(vocab=None, softmax=None).save(folder / "bare")
    for name, content in {
        "text.txt": b"the river bank is a boat\n" * 9, "few.txt": b"a few words\n",
        "empty.txt": b"\n\n", "zero.txt": b"", "bad.txt": b"fine\n\xff\xfe\n",
        "nul.txt": b"a\0b c\n" * 50,
        "cp949.txt": "한국어 문장 하나 .\n".encode("cp949") * 50, "old.h5": b"old",
        "utf16.txt": "ein Text\n".encode("utf-16-le") * 300, "notes.json": b'{"name": "value"}\n',
        "long.txt": b"I sat\n" + 10_001 * b"a " + b"\n", "full/notes.txt": b"",
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    write_shards([["by", "the", "river"]] * 20, folder / "shards", metadata={"sources": []})
    shard = folder / "shards/shard-00000.bin"
    shard.write_bytes(shard.read_bytes()[:-1] + b"\xff")
    return folder


def files_of(folder):
    """All files and their contents; text that was prepared for a run may stay."""
    paths = [path for path in folder.rglob("*") if "run" not in path.relative_to(folder).parts]
    return {path: path.read_bytes() if path.is_file() else None for path in paths}


@pytest.mark.parametrize("command", ROWS)
def test_wrong_input_is_named_with_exit_code_2(command, folder, shared, monkeypatch):
    monkeypatch.chdir(folder)
    before = files_of(folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        paths = {
            "MODEL": shared / "model", "RUN": shared / "run", "BARE": folder / "bare",
            "run=RUN": f"run={shared / 'run'}", "PORT": taken.getsockname()[1],
        }  # fmt: skip
        done = elmokit(*(paths.get(word, word) for word in command.split()), expect=2)
    assert ROWS[command] in done.stderr
    assert done.stdout == "" or command.startswith("predict")  # answers to the lines before
    assert files_of(folder) == before
