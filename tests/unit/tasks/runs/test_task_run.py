"""Task runs: what is written down, what is read of other files, and a biLM that learns, too."""

import copy
import hashlib
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from safetensors.torch import load_file

from elmokit.errors import FormatError, InputError
from elmokit.jobs.job import read_log
from elmokit.tasks.runs.run_dir import read_metadata
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
