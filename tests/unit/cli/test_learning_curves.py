"""Models that pre-training keeps on its way, and commands that measure all of them."""

import json

import pytest

from elmokit.errors import InputError
from elmokit.weights.model_dir import load_model
from elmokit.weights.model_files import models_over_training

from ...builders.command_line import elmokit
from ...builders.training_models import WORDS, random_sentences, write_text


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curves")
    corpus = write_text(folder / "corpus.txt", random_sentences(200))
    settings = ["--set", "train.batch_size=4", "--set", "train.unroll_steps=5"]
    settings += ["--set", "vocab.min_count=1"]
    command = ["pretrain", corpus, "-o", folder / "run", "--preset", "toy", "--tokens", 400]
    elmokit(*command, *settings, "--keep", "100,200")
    return folder / "run"


@pytest.mark.e2e
def test_models_are_kept_and_differ(run_dir):
    models = models_over_training(str(run_dir))
    assert list(models) == [
        str(run_dir / "kept" / "100"),
        str(run_dir / "kept" / "200"),
        str(run_dir),
    ]
    assert list(models.values()) == [100, 200, 400]
    assert len({load_model(path).model_hash() for path in models}) == 3
    assert load_model(run_dir / "kept" / "100").spelling is not None


@pytest.mark.e2e
def test_pairs_are_scored_over_the_training(run_dir, tmp_path):
    path = tmp_path / "pairs.jsonl"
    pair = {"sentence_good": " ".join(WORDS[:3]), "sentence_bad": " ".join(WORDS[2::-1])}
    path.write_text(f"{json.dumps(pair)}\n", encoding="utf-8")
    found = json.loads(elmokit("pairs", run_dir, path, "--kept", "--json").stdout)
    assert list(found["words_read"].values()) == [100, 200, 400]
    for name in found["words_read"]:
        alone = json.loads(elmokit("pairs", name, path, "--json").stdout)
        assert found["models"][name] == alone["models"][name]
    assert "200" in elmokit("pairs", run_dir, path, "--kept").stdout


@pytest.mark.e2e
def test_reading_times_are_predicted_over_the_training(run_dir, tmp_path):
    path = tmp_path / "times.tsv"
    rows = [
        f"{number}\t{place}\t{word}\t{200 + 7 * place + number}"
        for number, sentence in enumerate(random_sentences(40))
        for place, word in enumerate(sentence, 1)
    ]
    path.write_text("\n".join(["item\tposition\tword\ttime", *rows]) + "\n", encoding="utf-8")
    command = ["reading", run_dir, path, "--measure", "time", "--kept"]
    found = json.loads(elmokit(*command, "--json").stdout)
    assert [one["words_read"] for one in found["over_training"]] == [100, 200, 400]
    assert (
        found["over_training"][-1]["gains"]["time"]["forward"] == found["gains"]["time"]["forward"]
    )
    assert "200" in elmokit(*command).stdout


@pytest.mark.e2e
def test_probes_measure_all_of_them(run_dir, tmp_path):
    for name in ("train", "dev"):
        words = "".join(
            f"{n}\t{word}\t_\t{'NOUN' if n % 2 else 'VERB'}\t_\t_\t0\t_\t_\t_\n"
            for n, word in enumerate(WORDS, 1)
        )
        (tmp_path / f"{name}.conllu").write_text(f"{words}\n" * 5, encoding="utf-8")
    command = ["probe", "pos", "--data", tmp_path, "--model", run_dir, "--kept"]
    found = json.loads(elmokit(*command, "--json").stdout)
    assert [one["words_read"] for one in found["over_training"]] == [100, 200, 400]
    assert found["over_training"][-1]["scores"] == found["scores"]
    assert "after 200 words" in elmokit(*command).stdout


@pytest.mark.e2e
def test_a_run_that_kept_nothing_says_how(run_dir, tmp_path):
    done = elmokit("pairs", run_dir / "kept" / "100", tmp_path / "none.jsonl", "--kept", expect=2)
    assert done.stderr
    with pytest.raises(InputError, match="--keep"):
        models_over_training("en")
