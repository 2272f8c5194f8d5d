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
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task
from elmokit.tasks.runs.training import TaskTrainConfig
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.weights.model_dir import load_model

from ....builders.task_models import toy_model

TABLE = "text\tlabel\nby the river\tgood\nI sat\tbad\n배 를 타고\tgood\n갔다 .\tbad\n"
PAIRS = "premise\thypothesis\tlabel\nI sat\tI\tyes\nby the river\tI sat\tno\n"
DOCUMENTS = "".join(
    f"#begin document ({name}); part 0\n{name}\t0\t0\tMinji\t(1)\n{name}\t0\t1\tsat\t-\n\n"
    f"{name}\t0\t0\tshe\t(1)\n{name}\t0\t1\tslept\t-\n\n#end document\n"
    for name in "ab"
)
ENTITIES = "Minji B-PER\nKim I-PER\nsat O\n\nby O\nBank B-LOC\n\n"
FILES = {
    "sentiment": ("tsv", TABLE), "nli": ("tsv", PAIRS), "ner": ("txt", ENTITIES),
    "coref": ("conll", DOCUMENTS),
}  # fmt: skip


@pytest.fixture
def train(tmp_path, model_dir):
    def train(task, name="run", *, inputs=None, vectors=None, **settings):
        suffix, text = FILES[task]
        path = tmp_path / f"{task}.{suffix}"
        path.write_text(text, encoding="utf-8")
        config = TaskRunConfig(
            task=task, hidden_dims=(8,), inputs=InputSettings(**(inputs or {})),
            train=TaskTrainConfig(**{"epochs": 1, "batch_size": 2} | settings),
        )  # fmt: skip
        train_task(
            config, path, path, tmp_path / name, model=str(model_dir), vectors=vectors,
            cache_dir=tmp_path / "layers",
        )  # fmt: skip
        return tmp_path / name

    return train


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("sat 1 2\nocean 3 4\nnight 5 6\n", encoding="utf-8")
    return path


def written(run_dir):
    return json.loads((run_dir / "task.json").read_text(encoding="utf-8"))


def rewrite(run_dir, metadata):
    (run_dir / "task.json").write_text(json.dumps(metadata), encoding="utf-8")


def test_a_run_may_read_its_sentences_in_lower_case_too(train, tmp_path):
    run_dir = train("ner", epochs=40, patience=60, learning_rate=0.05, lowercase_share=1.0)
    last = json.loads((run_dir / "metrics.jsonl").read_text("utf-8").splitlines()[-1])
    assert last["step"] == 2 * last["epoch"]  # four sentences, two at a time
    assert written(run_dir)["data"]["examples"] == 2
    run = TaskRun.load(run_dir)
    assert run.evaluate(tmp_path / "ner.txt").value == 100
    assert run.evaluate(tmp_path / "ner.txt", lowercase=True).value == 100
    with pytest.raises(InputError, match=r"`lowercase` .*not for sentiment"):
        TaskRun.load(train("sentiment", "other")).evaluate(
            tmp_path / "sentiment.tsv", lowercase=True
        )


# --- static vectors -------------------------------------------------------------------------------


def test_where_none_is_needed_any_bilm_that_splits_and_spells_words_alike_will_do(
    train, vectors, tmp_path
):
    run_dir = train("nli", inputs={"embeddings": "static"}, vectors=vectors)
    expected = list(TaskRun.load(run_dir).predict(["I sat\tby the river"]))
    other = tmp_path / "other"
    toy_model(seed=9).save(other)
    assert (
        list(TaskRun.load(run_dir, model=str(other)).predict(["I sat\tby the river"])) == expected
    )
    toy_model(tokenizer=TokenizerConfig(name="simple", version="1")).save(tmp_path / "splits")
    with pytest.raises(FormatError, match=r"/splits .*tokenizer .*simple.*not .*whitespace"):
        TaskRun.load(run_dir, model=str(tmp_path / "splits"))
    metadata = written(run_dir)
    metadata["bilm"]["char_vocab"]["max_characters"] = 9
    rewrite(run_dir, metadata)
    with pytest.raises(FormatError, match=r"max_characters': 16.*not .*max_characters': 9"):
        TaskRun.load(run_dir)
    for name in ("tokenizer", "char_vocab"):  # as in earlier versions
        del metadata["bilm"][name]
    rewrite(run_dir, metadata)
    with pytest.raises(FormatError, match=r"/other .*hash"):
        TaskRun.load(run_dir, model=str(other))


def test_a_run_keeps_the_hash_of_its_vectors_and_reads_no_other_file(train, vectors, caplog):
    run_dir = train("ner", vectors=vectors)
    assert written(run_dir)["vectors"] == {
        "path": str(vectors), "sha256": hashlib.sha256(vectors.read_bytes()).hexdigest(),
    }  # fmt: skip
    run = TaskRun.load(run_dir)
    vectors.write_text("sat 9 9\nocean 9 9\n", encoding="utf-8")
    list(run.predict(["the ocean"]))
    assert run._network.static.id_of("ocean") == 1
    assert "is not the file that the run was trained with: 2 unseen words" in caplog.text
    with pytest.raises(FormatError, match="is not the file that the run was trained with"):
        TaskRun.load(run_dir).keep_vectors()
    with pytest.raises(InputError, match="no static vectors"):
        TaskRun.load(train("ner", "other")).keep_vectors()


def test_a_run_that_keeps_all_vectors_needs_their_file_no_longer(train, vectors, tmp_path, caplog):
    run = TaskRun.load(train("ner", vectors=vectors))
    before = list(run.predict(["the ocean by night"]))
    run.keep_vectors()
    run.save(tmp_path / "whole")
    vectors.unlink()
    whole = TaskRun.load(tmp_path / "whole")
    assert set(whole._network.static.words) == {"sat", "ocean", "night"}
    assert list(whole.predict(["the ocean by night"])) == before
    assert "unseen words" not in caplog.text


# --- fine-tuning ----------------------------------------------------------------------------------


def test_a_bilm_that_learns_helps_is_in_the_run_and_answers_from_there(train, tmp_path, model_dir):
    settings = {
        "inputs": {"embeddings": "top", "characters": False, "dropout": 0.0, "positions": "input"},
        "epochs": 25, "patience": 40, "bilm_learning_rate": 1e-2,
    }  # fmt: skip
    runs = {flag: train("ner", f"{flag}", **settings, finetune_bilm=flag) for flag in (False, True)}
    losses = {}
    for flag, run_dir in runs.items():
        lines = (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        losses[flag] = sum(json.loads(line)["loss"] for line in lines[-5:])
        assert written(run_dir)["bilm"]["finetuned"] == flag
    assert losses[True] < 0.97 * losses[False]
    tensors = load_file(runs[True] / "model.safetensors")
    before = load_model(model_dir).state_dict()
    learned = {name for name in before if not name.startswith("softmax")}
    saved = {name.removeprefix("inputs.bilm.") for name in tensors if ".bilm." in name}
    assert saved == learned
    assert not any(torch.equal(tensors[f"inputs.bilm.{name}"], before[name]) for name in learned)
    run = TaskRun.load(runs[True], cache_dir=tmp_path / "other")
    assert run.evaluate(tmp_path / "ner.txt").value == written(runs[True])["dev"]["value"]
    assert not (tmp_path / "other").exists()  # layers that change are not kept
    texts = ["by the river", "", "갔다 ."]
    answers = [tags for _, tags in run.predict(texts)]
    assert answers == [tags for text in texts for _, tags in run.predict([text])]
    with pytest.raises(InputError, match=r"train\.finetune_bilm=true .*embeddings='none'"):
        train("ner", "none", inputs={"embeddings": "none"}, finetune_bilm=True)


# --- files and texts ------------------------------------------------------------------------------


def test_copies_answer_the_same_and_say_what_they_are(ner_run):
    texts = ("Minji sat .", "the ocean by night", "by the Bank")
    run = TaskRun.load(str(ner_run))
    expected = list(run.predict(texts))
    for copied in (pickle.loads(pickle.dumps(run)), copy.deepcopy(run)):
        assert list(copied.predict(texts)) == expected
        assert repr(copied) == repr(run)
    for part in ("ner", f"{len(run.labels)} labels", "elmo of", "fp32", "whitespace"):
        assert part in repr(run)


def test_threads_get_what_one_alone_gets_also_with_later_words(train, tmp_path):
    path = tmp_path / "vectors.txt"
    words = [f"w{n}" for n in range(64)]
    path.write_text("".join(f"{w} {n} {-n}\n" for n, w in enumerate(["sat", *words])))
    run_dir = train("ner", inputs={"embeddings": "static"}, vectors=path, epochs=3)
    texts = [[[words[8 * n + k], "sat", words[k]] for k in range(8)] for n in range(8)]
    expected = [list(TaskRun.load(run_dir).predict(some)) for some in texts]
    run = TaskRun.load(run_dir)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda some: list(run.predict(some)), texts)) == expected
