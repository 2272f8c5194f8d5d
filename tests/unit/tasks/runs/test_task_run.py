"""Task runs: what they write down and read of other files."""

import hashlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from safetensors.torch import load_file, save_file

from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.tasks.runs.run_dir import read_metadata, read_weights
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.weights.locate import PACKAGED_RUNS

from ....builders.task_models import ENTITIES, toy_model


@pytest.fixture
def train_ner(train, write):
    def train_ner(place="run", *, vectors=None, **settings):
        path = write(ENTITIES, name="ner.txt")
        return train("ner", path, place, options={"vectors": vectors}, **settings).run_dir

    return train_ner


@pytest.fixture
def vectors(write):
    return write("sat 1 2\nocean 3 4\nnight 5 6\n", name="vectors.txt")


def rewrite(run_dir, metadata):
    (run_dir / "task.json").write_text(json.dumps(metadata), encoding="utf-8")


def test_where_none_is_needed_any_bilm_that_splits_and_spells_words_alike_will_do(
    train, vectors, tmp_path, write
):
    path = write("premise\thypothesis\tlabel\nI sat\tI\tyes\nby the river\tI sat\tno\n")
    options = {"vectors": vectors}
    run_dir = train("nli", path, inputs={"embeddings": "static"}, options=options).run_dir
    other = tmp_path / "other"
    toy_model(seed=9).save(other)
    runs = TaskRun.load(run_dir), TaskRun.load(run_dir, model=str(other))
    first, second = (list(run.predict(["I sat\tby the river"])) for run in runs)
    assert first == second
    toy_model(tokenizer=TokenizerConfig(name="simple", version="1")).save(tmp_path / "splits")
    with pytest.raises(FormatError, match=r"/splits .*tokenizer .*simple.*not .*whitespace"):
        TaskRun.load(run_dir, model=str(tmp_path / "splits"))
    metadata = read_metadata(run_dir)
    metadata["bilm"]["char_vocab"]["max_characters"] = 9
    rewrite(run_dir, metadata)
    with pytest.raises(FormatError, match=r"max_characters': 16.*not .*max_characters': 9"):
        TaskRun.load(run_dir)
    for name in ("tokenizer", "char_vocab"):  # as in earlier versions
        del metadata["bilm"][name]
    rewrite(run_dir, metadata)
    with pytest.raises(FormatError, match=r"/other .*hash"):
        TaskRun.load(run_dir, model=str(other))


def test_a_bilm_with_the_same_weights_must_split_text_alike(train_ner, tmp_path):
    toy_model(tokenizer=TokenizerConfig(name="simple", version="1")).save(tmp_path / "splits")
    with pytest.raises(FormatError, match=r"/splits splits text with simple 1, .* whitespace"):
        TaskRun.load(train_ner(), model=str(tmp_path / "splits"))


def test_a_run_reads_no_other_vectors_and_needs_no_file_once_it_keeps_all(
    train_ner, vectors, caplog
):
    run_dir, sha256 = train_ner(vectors=vectors), hashlib.sha256(vectors.read_bytes()).hexdigest()
    assert read_metadata(run_dir)["vectors"] == {"path": str(vectors), "sha256": sha256}
    run = TaskRun.load(run_dir)
    before = list(run.predict(["the ocean by night"]))
    whole = TaskRun.load(run_dir)
    whole.keep_vectors()
    vectors.unlink()
    assert set(whole._network.static.words) == {"sat", "ocean", "night"}
    assert list(whole.predict(["the ocean by night"])) == before
    assert "unseen words" not in caplog.text
    vectors.write_text("sat 9 9\nocean 9 9\n", encoding="utf-8")
    run = TaskRun.load(run_dir)
    list(run.predict(["the ocean"]))
    assert run._network.static.id_of("ocean") == 1
    assert "is gone or another file: 2 unseen words" in caplog.text
    with pytest.raises(FormatError, match="is not the file that the run was trained with"):
        TaskRun.load(run_dir).keep_vectors()


def test_threads_get_what_one_alone_gets_also_with_later_words(train_ner, write):
    words = [f"w{n}" for n in range(64)]
    rows = [f"{word} {n} {-n}\n" for n, word in enumerate(["sat", *words])]
    path = write("".join(rows), name="vectors.txt")
    run_dir = train_ner(inputs={"embeddings": "static"}, vectors=path, epochs=3)
    texts = [[[words[8 * n + k], "sat", words[k]] for k in range(8)] for n in range(8)]
    expected = [list(TaskRun.load(run_dir).predict(some)) for some in texts]
    run = TaskRun.load(run_dir)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda some: list(run.predict(some)), texts)) == expected


def test_damaged_weights_are_found(ner_run, tmp_path):
    def without(path, name):
        tensors = load_file(path)
        del tensors[name]
        save_file(tensors, path)

    shutil.copytree(PACKAGED_RUNS / "ner-en", tmp_path / "saved")
    without(tmp_path / "saved/model.safetensors", "to_tags.bias")
    with pytest.raises(FormatError, match=r"/model\.safetensors: damaged.* SHA-256"):
        TaskRun.load(tmp_path / "saved")
    without(tmp_path / "saved/model.safetensors", "to_tags.weight.scale")
    with pytest.raises(FormatError, match=r"to_tags\.weight.* one scale per row"):
        read_weights(tmp_path / "saved")
    without(ner_run / "model.safetensors", "to_tags.bias")
    with pytest.raises(FormatError, match=r"does not fit task\.json: .*to_tags\.bias"):
        TaskRun.load(ner_run)


def test_settings_of_earlier_trainings_are_no_fault(ner_run):
    metadata = read_metadata(ner_run)
    metadata["config"]["train"]["finetune_bilm"] = metadata["bilm"]["finetuned"] = False
    metadata["config"]["columns"] = None
    rewrite(ner_run, metadata)
    assert TaskRun.load(ner_run).labels
    metadata["config"]["columns"] = {"word": 2, "tag": 3}
    rewrite(ner_run, metadata)
    with pytest.raises(ConfigError, match=r"/task\.json: `columns`"):
        TaskRun.load(ner_run)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (FormatError, {"storage": "int4"}, r"/task\.json: `storage`: unknown setting"),
        (ConfigError, {"config": {"task": "ner", "layers": 3}}, r"/task\.json: `layers`: unknown"),
        (ConfigError, {"config": {"task": "ner", "train": {"warmup": 3}}}, "`train.warmup`"),
        (InputError, {"config": {"task": "parsing"}}, "no task 'parsing'"),
        (FormatError, {"config": {"task": "ner", "inputs": {"embeddings": "elmo"}}},
         r"/task\.json does not say .*inputs\.characters, .*of another version"),
        (FormatError, {"labels": ["O"]}, r"does not fit task\.json: .*again\."),
        (FormatError, {"labels": ["O", "O"]}, r"does not fit task\.json"),
        (FormatError, {"labels": list(map(str, range(1 << 16)))}, r"does not fit task\.json"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(kind, change, message, ner_run):
    rewrite(ner_run, read_metadata(ner_run) | change)
    with pytest.raises(kind, match=f"(?s){message}"):
        TaskRun.load(ner_run)


def test_a_bilm_that_has_moved_is_told_with_the_run(ner_run, tmp_path, monkeypatch):
    def move_to(path):
        metadata = read_metadata(ner_run)
        metadata["bilm"]["path"] = path
        rewrite(ner_run, metadata)

    move_to("/nowhere/model")
    with pytest.raises(FileNotFoundError, match="no model '/nowhere/model'") as caught:
        TaskRun.load(ner_run)
    (note,) = caught.value.__notes__
    assert all(part in note for part in (str(ner_run), "--model DIR", "TaskRun.load("))
    # A model of the package is found wherever one works: `en` there is not the one that is meant.
    move_to("en")
    toy_model().save(tmp_path / "en")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError, match=r"/models/en .*/run .*--model"):
        TaskRun.load(ner_run)
    assert TaskRun.load(ner_run, model="en").labels
