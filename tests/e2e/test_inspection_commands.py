"""`elmokit tokenize`, `surprisal`, `trace`, `predict-word` and `explore`, as a user types them."""

import csv
import io
import json
import signal
import subprocess
import urllib.request
from urllib.parse import urlsplit

import pytest

from elmokit.evaluation.perplexity import perplexity_of_files
from elmokit.evaluation.text_scorer import open_scorer
from elmokit.weights.model_dir import load_model

from ..builders.command_line import elmokit, start_elmokit
from ..builders.training_models import random_sentences, toy_model, write_text

SENTENCES = random_sentences(12)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspection")
    toy_model().save(folder / "model")
    return folder / "model", write_text(folder / "text.txt", SENTENCES)


def table(text):
    return list(csv.DictReader(io.StringIO(text), dialect="excel-tab"))


def test_surprisal_prints_a_row_a_word_and_the_perplexity(places):
    model, text = places
    done = elmokit("surprisal", model, text, "--device", "cpu")
    rows = table(done.stdout)
    words = [word for sentence in SENTENCES for word in [*sentence, "</S>"]]
    assert [row["word"] for row in rows] == words
    lines = text.read_text(encoding="utf-8").splitlines()
    for row in rows:
        if row["word"] != "</S>":
            line = lines[int(row["line"]) - 1]
            assert line[int(row["start"]) : int(row["end"])] == row["word"]
    expected = perplexity_of_files(*open_scorer(str(model), device="cpu"), [text])
    for way in ("forward", "backward", "mean"):
        mean = sum(float(row[way]) for row in rows) / len(rows)
        assert 2**mean == pytest.approx(getattr(expected, way), rel=1e-6)
    assert f"{expected.forward:.2f} forward" in done.stderr


@pytest.mark.parametrize(
    ("command", "made"),
    [
        (["perplexity", "MODEL", "TEXT", "--state", "reset"], {"state": "reset"}),
        (["surprisal", "MODEL", "TEXT", "-o", "OUT.tsv"], {"state": "warm"}),
        (["tokenize", "MODEL", "TEXT"], {}),
        (["trace", "MODEL", "the ship"], {}),
        (["predict-word", "MODEL", "the"], {"state": "warm", "precision": "fp32"}),
        (["neighbors", "TEXT", "--word", SENTENCES[0][0], "--model", "MODEL"], {"layers": "top"}),
        (["embed", "TEXT", "-o", "OUT.npz", "--model", "MODEL"], {"layers": "all"}),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_json_names_what_made_it(places, command, made, tmp_path):
    model, text = places
    told = {"MODEL": model, "TEXT": text}
    told |= {name: tmp_path / name for name in ("OUT.tsv", "OUT.npz")}
    done = elmokit(*(told.get(word, word) for word in command), "--json")
    metadata = json.loads(done.stdout)["metadata"]
    loaded = load_model(model)
    expected = loaded.metadata() | made
    assert metadata.pop("tokenizer")["name"] == expected.pop("tokenizer")["name"] == "whitespace"
    assert metadata.items() >= expected.items()
    assert metadata["model_hash"] == loaded.model_hash()


def test_tokenize_prints_tokens_and_counts(places):
    model, _ = places
    done = elmokit("tokenize", model, "--text", "the 강", "--text", "ship")
    tokens = [line.split("\t") for line in done.stdout.splitlines() if not line.startswith("#")]
    assert tokens == [
        ["0", "3", "the", "", "259 117 105 102 260", ""],
        ["4", "5", "강", "", "259 235 177 150 260", ""],
        ["0", "4", "ship", "", "259 116 105 106 113 260", "unknown"],
    ]
    assert "3 tokens, 1 unknown" in done.stderr


def test_trace_tells_the_way_of_a_word(places):
    model, _ = places
    done = elmokit("trace", model, "the 강", "--word", 1, "--weights", "0.2,0.5,0.3")
    assert "the [강]" in done.stdout
    assert "259 235 177 150 260" in done.stdout
    shown = [line.split() for line in done.stdout.splitlines() if line[:1].isdecimal()]
    assert [row[:2] for row in shown] == [["0", "0.2000"], ["1", "0.5000"], ["2", "0.3000"]]


def test_predict_word_shows_three_distributions(places):
    model, _ = places
    done = elmokit("predict-word", model, "the river 강", "--word", 1, "--top", 2)
    first, *rest = done.stdout.splitlines()
    assert first.startswith("the [?] 강   hidden: river")
    assert [line.split()[0] for line in rest] == ["forward", "backward", "both"]
    found = json.loads(elmokit("predict-word", model, "the river", "--json").stdout)
    assert (found["index"], found["insert"], found["word"]) == (2, True, None)
    assert len(found["both"]["top"]) == 10


def test_explore_exports_a_folder_once(places, tmp_path):
    model, _ = places
    site = tmp_path / "site"
    report = json.loads(elmokit("explore", "-m", model, "--export", site, "--json").stdout)
    assert report["models"] == ["model"]
    assert (site / "models/model/warm.safetensors").exists()


def test_explore_serves_until_it_is_interrupted(places, tmp_path):
    model, _ = places
    runs = [tmp_path / name for name in ("a/x", "b/x", "c/x-1", "c/x-2")]
    for one in runs:
        one.mkdir(parents=True)
        (one / "metrics.jsonl").touch()
    process = start_elmokit(
        "explore", "-m", model, "--port", 0, *(word for one in runs for word in ("--run", one)),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    url = next(line for line in process.stderr if line.startswith("http")).split()[0]
    assert urlsplit(url).hostname == "127.0.0.1"
    with urllib.request.urlopen(f"{url}explorer.json", timeout=20) as answer:
        found = json.load(answer)
    assert [entry["name"] for entry in found["models"]] == ["model"]
    assert [entry["name"] for entry in found["runs"]] == ["x", "x-2", "x-1", "x-2-2"]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert errors == ""


def test_plot_draws_a_run(tmp_path):
    pytest.importorskip("matplotlib")
    assert "no run" in elmokit("plot", tmp_path, "-o", tmp_path / "x.png", expect=2).stderr
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 5.0}\n')
    done = elmokit("plot", tmp_path, "-o", tmp_path / "x.png")
    assert "1 row" in done.stdout
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "--overwrite" in elmokit("plot", tmp_path, "-o", tmp_path / "x.png", expect=2).stderr
