"""An excerpt of word vectors gives an experiment the same vectors as the whole file."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.vectors.training import VectorsConfig, train_vectors
from elmokit.vectors.vector_files import read_vectors, write_vectors

from ..builders.task_models import toy_model

RECIPE = Path(__file__).parents[2] / "recipes/excerpt_vectors.py"
TRAIN = {f"train{number}" for number in range(20)}  # two of these sentences are held out
READ = TRAIN | {"dev0", "Dev1"}


@pytest.fixture
def run(monkeypatch):
    spec = importlib.util.spec_from_file_location("excerpt_vectors", RECIPE)
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["excerpt_vectors.py", *map(str, arguments)])
        recipe.main()

    return run


@pytest.fixture
def data(tmp_path):
    """Named entities, a sentence of one word each, and entailment; every word stands once."""
    folders = {name: tmp_path / "data" / name for name in ("ner-en-uner-ewt", "nli-snli-sample")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    for split, words in (("train", sorted(TRAIN)), ("dev", ["dev0", "Dev1"])):
        text = "".join(f"{word}\tB-PER\n\n" for word in words)
        (folders["ner-en-uner-ewt"] / f"{split}.conll").write_text(text, "utf-8")
        pairs = [
            {"premise": f"premise{split}{n}", "hypothesis": "other", "label": "neutral"}
            for n in range(4)
        ]
        text = "".join(f"{json.dumps(pair)}\n" for pair in pairs)
        (folders["nli-snli-sample"] / f"{split}.jsonl").write_text(text, "utf-8")
    return tmp_path / "data"


@pytest.fixture(params=["word2vec", "fastText"])
def vectors(request, tmp_path):
    """Of half of the words; fastText makes the others of their characters."""
    path = tmp_path / "vectors.bin"
    words = [*sorted(READ)[::2], "dev1", "elsewhere"]
    if request.param == "word2vec":
        values = np.random.default_rng(0).standard_normal((len(words), 4))
        write_vectors(path, words, values.astype(np.float32))
    else:
        (tmp_path / "text.txt").write_text(f"{' '.join(words)}\n" * 20, "utf-8")
        config = VectorsConfig(kind="fasttext", dim=4, epochs=1, buckets=50, min_count=1)
        train_vectors([tmp_path / "text.txt"], path, config)
    return path


def test_the_words_that_runs_read_have_the_vectors_of_the_whole_file(
    run, vectors, data, tmp_path, capsys
):
    output = tmp_path / "excerpt.bin"
    run(vectors, "figure1", "controls", "--tasks", "ner", "--data", data, "-o", output)
    whole, found = read_vectors(vectors, only=READ), read_vectors(output)
    assert set(found.words) == set(whole.words)
    assert found.words  # half of them, or all
    for word in READ:
        np.testing.assert_array_equal(
            found.values[found.id_of(word)], whole.values[whole.id_of(word)]
        )
    assert capsys.readouterr().out.endswith(f"vectors for {len(READ)} words\n")


def test_words_of_test_files_are_read_if_wanted(run, data, tmp_path):
    vectors, output, test = (tmp_path / name for name in ("v.bin", "excerpt.bin", "test"))
    write_vectors(vectors, ["train1", "unseen"], np.eye(2, dtype=np.float32))
    (test / "ner-en-uner-ewt").mkdir(parents=True)
    (test / "ner-en-uner-ewt/test.conll").write_text("unseen\tB-PER\n\n", "utf-8")
    given = (vectors, "table1", "--tasks", "ner", "--data", data, "-o", output)
    run(*given)
    assert read_vectors(output).words == ["train1"]
    run(*given, "--test", test, "--overwrite")
    assert set(read_vectors(output).words) == {"train1", "unseen"}


def test_the_tokenizer_is_that_of_the_model(run, data, tmp_path):
    """The toy model splits at blanks alone, the packaged one also before a period."""
    pairs = [
        {"premise": premise, "hypothesis": "two", "label": "neutral"} for premise in ("one.", "two")
    ]
    for split in ("train", "dev"):
        text = "".join(f"{json.dumps(pair)}\n" for pair in pairs)
        (data / "nli-snli-sample" / f"{split}.jsonl").write_text(text, "utf-8")
    toy_model().save(tmp_path / "model")
    vectors, output = tmp_path / "v.bin", tmp_path / "excerpt.bin"
    write_vectors(vectors, ["one.", "one", "."], np.eye(3, dtype=np.float32))
    given = (vectors, "table1", "--tasks", "nli", "--data", data, "-o", output)
    run(*given)
    assert set(read_vectors(output).words) == {"one", "."}
    run(*given, "--model", tmp_path / "model", "--overwrite")
    assert read_vectors(output).words == ["one."]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table4"], "table4 trains no task"),
        (["table9"], "table9"),
        (["table1", "--tasks", "qaa"], "no task 'qaa'"),
        (["table1", "korean"], "several languages"),
    ],
)
def test_what_cannot_be_read_is_said_before_anything_is_written(
    run, data, tmp_path, arguments, message
):
    vectors = tmp_path / "v.bin"
    write_vectors(vectors, ["dev0"], np.eye(1, dtype=np.float32))
    with pytest.raises(InputError, match=message):
        run(vectors, *arguments, "--data", data, "-o", tmp_path / "excerpt.bin")
    assert not (tmp_path / "excerpt.bin").exists()


def test_the_file_itself_other_suffixes_and_words_with_a_blank_are_refused(run, data, tmp_path):
    vectors = tmp_path / "v.bin"
    write_vectors(vectors, ["dev0"], np.eye(1, dtype=np.float32))
    given = (vectors, "table1", "--tasks", "ner", "--data", data)
    before = vectors.read_bytes()
    with pytest.raises(InputError, match=r"v\.bin"):
        run(*given, "-o", vectors, "--overwrite")
    assert vectors.read_bytes() == before
    with pytest.raises(InputError, match=r"excerpt\.npz"):
        run(*given, "-o", tmp_path / "excerpt.npz")
    (data / "ner-en-uner-ewt/dev.conll").write_text("a b\tB-PER\n\n", "utf-8")
    with pytest.raises(InputError, match="'a b'"):
        run(*given, "-o", tmp_path / "excerpt.bin")
