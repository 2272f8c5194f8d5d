"""Task runs: what they write down and read of other files, and a biLM that learns, too."""

import copy
import hashlib
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from safetensors.torch import load_file, save_file

from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.jobs.job import read_log
from elmokit.tasks.runs.run_dir import read_metadata, read_weights
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.weights.model_dir import load_model

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


def test_a_run_may_read_its_sentences_in_lower_case_too(train, train_ner, write, tmp_path):
    run_dir = train_ner(epochs=40, patience=60, learning_rate=0.05, lowercase_share=1.0)
    *_, last = read_log(run_dir / "metrics.jsonl")
    assert last["step"] == 2 * last["epoch"]  # four sentences, two at a time
    assert read_metadata(run_dir)["data"]["examples"] == 2
    run = TaskRun.load(run_dir)
    assert run.evaluate(tmp_path / "ner.txt").value == 100
    assert run.evaluate(tmp_path / "ner.txt", lowercase=True).value == 100
    path = write("text\tlabel\nby the river\tgood\nI sat\tbad\n")
    other = TaskRun.load(train("sentiment", path, "other").run_dir)
    with pytest.raises(InputError, match=r"`lowercase` .*not for sentiment"):
        other.evaluate(path, lowercase=True)


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


def test_a_run_reads_no_other_vectors_and_needs_no_file_once_it_keeps_all(
    train_ner, vectors, tmp_path, caplog
):
    run_dir, sha256 = train_ner(vectors=vectors), hashlib.sha256(vectors.read_bytes()).hexdigest()
    assert read_metadata(run_dir)["vectors"] == {"path": str(vectors), "sha256": sha256}
    run = TaskRun.load(run_dir)
    before = list(run.predict(["the ocean by night"]))
    run.keep_vectors()
    run.save(tmp_path / "whole")
    vectors.unlink()
    whole = TaskRun.load(tmp_path / "whole")
    assert set(whole._network.static.words) == {"sat", "ocean", "night"}
    assert list(whole.predict(["the ocean by night"])) == before
    assert "unseen words" not in caplog.text
    vectors.write_text("sat 9 9\nocean 9 9\n", encoding="utf-8")
    run = TaskRun.load(run_dir)
    list(run.predict(["the ocean"]))
    assert run._network.static.id_of("ocean") == 1
    assert "is not the file that the run was trained with: 2 unseen words" in caplog.text
    with pytest.raises(FormatError, match="is not the file that the run was trained with"):
        TaskRun.load(run_dir).keep_vectors()
    with pytest.raises(InputError, match="no static vectors"):
        TaskRun.load(train_ner("other")).keep_vectors()


def test_a_bilm_that_learns_helps_is_in_the_run_and_answers_from_there(
    train_ner, tmp_path, model_dir
):
    settings = {
        "inputs": {"embeddings": "top", "characters": False, "dropout": 0.0, "positions": "input"},
        "epochs": 25, "patience": 40, "bilm_learning_rate": 1e-2,
    }  # fmt: skip
    runs = {flag: train_ner(f"{flag}", **settings, finetune_bilm=flag) for flag in (False, True)}
    losses = {}
    for flag, run_dir in runs.items():
        losses[flag] = sum(row["loss"] for row in read_log(run_dir / "metrics.jsonl")[-5:])
        assert read_metadata(run_dir)["bilm"]["finetuned"] == flag
    assert losses[True] < 0.97 * losses[False]
    tensors = load_file(runs[True] / "model.safetensors")
    before = load_model(model_dir).state_dict()
    learned = {name for name in before if not name.startswith("softmax")}
    saved = {name.removeprefix("inputs.bilm.") for name in tensors if ".bilm." in name}
    assert saved == learned
    assert not any(torch.equal(tensors[f"inputs.bilm.{name}"], before[name]) for name in learned)
    run = TaskRun.load(runs[True], cache_dir=tmp_path / "other")
    assert run.evaluate(tmp_path / "ner.txt").value == read_metadata(runs[True])["dev"]["value"]
    assert not (tmp_path / "other").exists()  # layers that change are not kept
    texts = ["by the river", "", "갔다 ."]
    answers = [tags for _, tags in run.predict(texts)]
    assert answers == [tags for text in texts for _, tags in run.predict([text])]
    with pytest.raises(InputError, match=r"train\.finetune_bilm=true .*embeddings='none'"):
        train_ner("none", inputs={"embeddings": "none"}, finetune_bilm=True)


def test_copies_answer_the_same_and_say_what_they_are(ner_run):
    texts = ("Minji sat .", "the ocean by night", "by the Bank")
    run = TaskRun.load(str(ner_run))
    expected = list(run.predict(texts))
    for copied in (pickle.loads(pickle.dumps(run)), copy.deepcopy(run)):
        assert list(copied.predict(texts)) == expected
        assert repr(copied) == repr(run)
    for part in ("ner", f"{len(run.labels)} labels", "elmo of", "fp32", "whitespace"):
        assert part in repr(run)


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


TEXTS = ("Minji Kim sat", "by the Bank", "")


@pytest.fixture
def run(ner_run):
    return TaskRun.load(ner_run)


@pytest.mark.parametrize(("dtype", "most"), [("float32", 1.01), ("float16", 0.6), ("int8", 0.45)])
def test_a_saved_run_is_smaller_and_answers_the_same(run, dtype, most, ner_run, tmp_path):
    if dtype == "int8":
        with pytest.raises(ValueError, match="round_to"):  # digits would be lost
            run.save(tmp_path / "saved", dtype=dtype)
        assert not (tmp_path / "saved").exists()
        assert run.metadata.get("weights", "float32") == "float32"
    run.round_to(dtype)
    run.save(tmp_path / "saved", dtype=dtype)
    saved = TaskRun.load(tmp_path / "saved")
    assert list(saved.predict_json(TEXTS)) == list(run.predict_json(TEXTS))
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("run", "saved")]
    assert sizes[1] < most * sizes[0]
    trained_card = (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    assert trained_card == run.card().replace(dtype, "float32")
    names = {path.name for path in (tmp_path / "saved").iterdir()}
    assert names == {"task.json", "model.safetensors", "README.md"}


def test_an_older_saved_run_is_replaced_and_nothing_else(run, ner_run, tmp_path):
    run.save(tmp_path / "saved")
    run.metadata["card"] = {"language": "xx"}
    run.metadata["bilm"]["path"] = "/models/\udce9t\udce9"  # a name that is not UTF-8
    run.save(tmp_path / "saved")
    card = (tmp_path / "saved" / "README.md").read_text(encoding="utf-8")
    assert card == run.card()
    assert "xx" in card
    assert r"`/models/\udce9t\udce9`" in card
    with pytest.raises(FileExistsError, match=r"/run exists .*not overwritten"):
        run.save(ner_run)  # with checkpoints


def test_damaged_weights_are_found(run, ner_run, tmp_path):
    def without(path, name):
        tensors = load_file(path)
        del tensors[name]
        save_file(tensors, path)

    run.round_to("int8")
    run.save(tmp_path / "saved", dtype="int8")
    path = tmp_path / "saved" / "model.safetensors"
    without(path, "to_tags.weight.scale")
    with pytest.raises(FormatError, match=r"/model\.safetensors: damaged.* SHA-256"):
        TaskRun.load(tmp_path / "saved")
    with pytest.raises(FormatError, match=r"to_tags\.weight.* one scale per row"):
        read_weights(tmp_path / "saved")
    without(ner_run / "model.safetensors", "to_tags.bias")
    with pytest.raises(FormatError, match=r"does not fit task\.json: .*to_tags\.bias"):
        TaskRun.load(ner_run)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (FormatError, {"storage": "int4"}, r"/task\.json: unknown setting `storage`"),
        (ConfigError, {"config": {"task": "ner", "layers": 3}}, r"/task\.json: .* `layers`"),
        (InputError, {"config": {"task": "parsing"}}, "no task 'parsing'"),
        (FormatError, {"config": {"task": "ner", "inputs": {"embeddings": "elmo"}}},
         r"/task\.json does not say .*inputs\.characters, .*of another version"),
        (FormatError, {"labels": ["O"]}, r"does not fit task\.json: .*again\."),
        (FormatError, {"labels": ["O", "O"]}, r"does not fit task\.json"),
        (FormatError, {"labels": list(map(str, range(1 << 16)))}, r"does not fit task\.json"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_what_is_newer_with_its_version(
    kind, change, message, ner_run
):
    metadata = read_metadata(ner_run) | change
    for version in ("0.1.0", "99.1.0"):
        rewrite(ner_run, metadata | {"elmokit_version": version})
        with pytest.raises(kind, match=f"(?s){message}") as raised:
            TaskRun.load(ner_run)
        is_newer = version == "99.1.0" and "labels" not in change
        assert str(raised.value).count("written by elmokit 99.1.0") == is_newer
        assert not is_newer or "train the task again" not in str(raised.value)


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
