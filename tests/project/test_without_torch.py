"""Everything that a frozen model answers, it answers where there is no PyTorch."""

import json
import os
import subprocess
import sys
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from ..builders.command_line import run_python

SENTENCES = [["I", "sat", "by", "the", "bank", "."], [], ["Yes", "."]]
COMMANDS = """
tokenize en -t "I sat."
perplexity en TEXT
surprisal en -t "I sat." --top 2
predict-word en "I sat by the"
trace en "I sat ."
embed TEXT -o OUT --model en --shard 0/2
embed TEXT -o OTHER --model en --shard 1/2
merge OUT OTHER -o MERGED
neighbors TEXT --word bank --model en
info en
info OUT
info ner-ko
predict ner-en TEXT --json
evaluate pos-en DATA
cache
convert en ORIGINAL
convert ORIGINAL MODEL
convert MODEL ONNX
explore --export PAGE --model en
"""
LEARN = """
train ner --data TEXT --model en -o MODEL
pretrain TEXT -o MODEL
finetune en TEXT -o MODEL
probe wsd --data TEXT --model en
"""
TEXTS = {
    "en": ["Minji Kim moved from Seoul to Oslo.", "", "It costs 5 euros"],
    "ko": ["김민수는 서울에 갔다.", ""],
}
WITHOUT = """
import sys
sys.modules["torch"] = None
"""
ANSWERS = """
import json
import numpy as np
import elmokit
arrays = {}
for precision in ("fp32", "bf16", "int8"):
    embedder = elmokit.Embedder.load("en", precision=precision, num_threads=1)
    for state in ("reset", "warm", "carry"):
        vectors = embedder.embed(sentences, state=state)
        arrays[precision + state] = np.concatenate(vectors, axis=1)
    arrays[precision + "pooled"] = embedder.embed_sentences(sentences)
    vectors, state = embedder.embed_batch(sentences)
    arrays[precision + "state"] = np.concatenate(embedder.embed_batch(sentences, state=state)[0], 1)
arrays["surprisal"] = np.array([row.mean for row in elmokit.surprisal("en", sentences)])
arrays["perplexity"] = np.array(elmokit.perplexity("en", sentences).mean)
for name, texts in texts_of.items():
    tagger = elmokit.TaskRun.load(name)
    rows = [tagger.task.show(*answer) for answer in tagger.predict(texts)]
    arrays[name] = np.array(json.dumps([*rows, *tagger.predict_json(texts)]))
"""
"""What models and taggers of the package make of sentences and texts."""


@pytest.fixture
def run(tmp_path: Path):
    """Run Python code in a process of its own."""

    def run(code: str):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = run_python(code, timeout=300, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr
        return done

    return run


def test_the_same_bits_come_out(run, tmp_path):
    pytest.importorskip("torch")
    languages = ["en"] if find_spec("kiwipiepy") is None else ["en", "ko"]
    texts = {f"{task}-{name}": TEXTS[name] for name in languages for task in ("pos", "ner")}
    given = {"sentences": SENTENCES, "texts_of": texts}
    program = f"{WITHOUT}globals().update({given}){ANSWERS}np.savez('without.npz', **arrays)"
    run(program)
    exec(ANSWERS, given)
    expected = given["arrays"]
    with np.load(tmp_path / "without.npz") as ours:
        assert list(expected) == list(ours)
        for name in ours:
            assert np.array_equal(expected[name], ours[name]), name


def test_commands_work(run, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("I sat by the bank .\nThe bank raised its rates .\n" * 3, encoding="utf-8")
    data = tmp_path / "data.conllu"
    data.write_text("1\tI\ti\tPRON\t_\t_\t0\t_\t_\t_\n\n", encoding="utf-8")
    names = {
        "TEXT": text, "DATA": data, "OUT": "out.h5", "OTHER": "other.h5", "MERGED": "merged.h5",
        "ORIGINAL": "original", "MODEL": "model", "ONNX": "model.onnx", "PAGE": "page",
    }  # fmt: skip
    places = {name: str(tmp_path / path) for name, path in names.items()}
    use, learn = (lines.strip().splitlines() for lines in (COMMANDS, LEARN))
    if find_spec("onnxruntime") is None:
        use = [line for line in use if "ONNX" not in line]
    code = f"""{WITHOUT}
import shlex
from elmokit.cli import app
for line in {use + learn!r}:
    words = [{places!r}.get(word, word) for word in shlex.split(line)]
    code = app(words, standalone_mode=False) or 0
    assert code == (0 if line in {use!r} else 2), (line, code)
"""
    assert run(code).stderr.count("[train]") == len(learn)


SERVER = f"""{WITHOUT}
from elmokit.cli import app
app(["serve", "--model", "en", "--task", "ner-en", "--port", "0", "--json"])
"""


def test_a_server_predicts():
    pytest.importorskip("starlette", reason="extra `serve` is not installed")
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        request = urllib.request.Request(
            f"{url}predict/ner-en", json.dumps({"inputs": TEXTS["en"][0]}).encode(),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request) as response:
            answer = json.load(response)
        server.terminate()
    assert [found["text"] for found in answer["entities"]] == ["Minji Kim", "Seoul", "Oslo"]


def test_the_learn_floor_says_what_to_install(run):
    code = f"""{WITHOUT}
import elmokit
for needs_torch in (lambda: elmokit.Embedder.load("en", device="cuda"), lambda: elmokit.ELMo):
    try:
        needs_torch()
    except elmokit.MissingExtraError as error:
        print(error)
"""
    assert run(code).stdout.count("[train]") == 2
