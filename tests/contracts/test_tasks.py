"""What every task must do: learn four examples, be saved and loaded, and answer the same."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
import torch

from elmokit.errors import InputError
from elmokit.tasks.formats.data_files import find_split
from elmokit.tasks.inputs.settings import CONDITION_INPUTS, InputSettings
from elmokit.tasks.inputs.task_bilm import TaskBiLM
from elmokit.tasks.networks.encoder import build_network
from elmokit.tasks.registry import TASKS, EmbeddingKind, find_task
from elmokit.tasks.runs.examples import Examples
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task
from elmokit.tasks.runs.training import TaskTrainConfig

from ..builders.task_models import saved_toy_model

DATA = Path(__file__).parents[2] / "benchmarks/golden_data"
FILES = {path.stem: path for path in DATA.iterdir()}
"""Four examples of each task."""
TEXTS = {
    "qa": ["Who sat ?\tMinji sat by the river .", "무엇 을 ?\t배 를 타고 갔다 .",
           "Where ?\tthe bank of the river"],
    "srl": ["I *sat*", "배 를 *타고*", "the river *sat* by the bank"],
    "nli": ["I sat\tI", "배 를 타고\t배", "by\tthe bank of the river"],
}  # fmt: skip
EPOCHS = {"ner": 50, "qa": 55, "nli": 80}
"""Where 30 are too few; tasks that drop half of what they read, at every place, learn slowly."""


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    return saved_toy_model(tmp_path_factory)


@pytest.fixture
def data(tmp_path, task):
    folder = tmp_path / "data"
    folder.mkdir()
    for split in ("train", "dev"):
        (folder / f"{split}{FILES[task].suffix}").write_bytes(FILES[task].read_bytes())
    return folder


def run_task(task, data, run_dir, model_dir, *, inputs=None, epochs=60, **options):
    config = TaskRunConfig(
        task=task,
        hidden_dims=tuple(24 for _ in find_task(task).default_hidden_dims[:2]),
        # a toy biLM says little: words are read by their characters, too
        inputs=inputs or InputSettings(dropout=0.0, characters=True),
        train=TaskTrainConfig(epochs=epochs, patience=epochs, learning_rate=5e-3, batch_size=2),
    )
    return train_task(
        config, find_split(data, "train"), find_split(data, "dev"), run_dir,
        model=None if model_dir is None else str(model_dir),
        cache_dir=run_dir.parent / "layers", **options,
    )  # fmt: skip


def without_numbers(answer):
    """An answer without probabilities, whose last digits depend on the batch."""
    return json.loads(json.dumps(answer), parse_float=lambda number: None)


def check_places(text, answer, *, is_coref):
    """Offsets are those of the text as it was written; probabilities are likely after training."""
    texts = {"first_tokens": "first", "second_tokens": "second", "tokens": "text"}
    for tokens in texts.keys() & answer.keys():
        written = answer[texts[tokens]]
        assert written in text.split("\t")
        for token in answer[tokens]:
            assert written[token["start"] : token["end"]] == token["text"]
    spans = [answer[name] for name in ("entities", "roles") if name in answer]
    for span in [one for found in [*spans, *answer.get("clusters", [])] for one in found]:
        assert answer["text"][span["start"] : span["end"]] == span["text"]
        inside = answer["tokens"][span["token_start"] : span["token_end"]]
        assert (inside[0]["start"], inside[-1]["end"]) == (span["start"], span["end"])
        assert is_coref or 0 < span["probability"] <= 1
    if "answer" in answer:
        assert answer["context"][answer["start"] : answer["end"]] == answer["answer"]
    for one in (answer, *answer.get("tokens", [])):
        assert 0 <= one.get("probability", 1) <= 1
    if "probabilities" in answer:
        assert sum(answer["probabilities"].values()) == pytest.approx(1)


def words_of(task, text):
    """A text as lists of words: what the tokenizer of the model makes of it."""
    parts = [part.split() for part in text.split("\t")]
    return parts if task.num_texts > 1 or task.name == "coref" else parts[0]


@pytest.mark.parametrize("task", TASKS)
def test_four_examples_are_learned_saved_and_loaded(task, data, tmp_path, model_dir):
    result = run_task(task, data, tmp_path / "run", model_dir, epochs=EPOCHS.get(task, 30))
    assert result.best.dev.value == 100
    run = TaskRun.load(tmp_path / "run", cache_dir=tmp_path / "layers")
    score = run.evaluate(find_split(data, "dev"))
    assert score.value == 100
    assert float(run.task.score_from_counts(score.counts.sum(axis=0))) == pytest.approx(100)
    a, b, c = TEXTS.get(task, ["by the river", "배 를 타고", ""])
    first = list(run.predict([a, b, c]))
    again = list(TaskRun.load(tmp_path / "run").predict([b, c, a]))
    shown = [run.task.show(*answer) for answer in first]
    assert shown == [run.task.show(*again[index]) for index in (2, 0, 1)]
    written = list(run.predict_json([a, b, c]))
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    other_order = list(run.predict_json([c, a]))
    assert without_numbers(other_order[1]) == without_numbers(written[0])
    for text, answer in zip((a, b, c), written, strict=True):
        check_places(text, answer, is_coref=task == "coref")
    as_words = list(run.predict([words_of(run.task, text) for text in (a, b, c)]))
    assert [run.task.show(*answer) for answer in as_words] == shown
    rows = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == result.num_epochs


@pytest.mark.parametrize("task", TASKS)
def test_every_weight_learns_and_tensors_are_made_where_the_batches_are(
    task, data, tmp_path, model_dir
):
    """With another default device, a tensor that is made without a device meets no other one."""
    found = find_task(task)
    dims = tuple(8 for _ in found.default_hidden_dims[:2])
    config = TaskRunConfig(task=task, hidden_dims=dims).resolved(with_static=False)
    bilm = TaskBiLM.open(config.inputs, str(model_dir), cache_dir=tmp_path / "layers")
    examples = found.read(find_split(data, "train"), training=True, tokenize=str.split)
    network = build_network(found, config, found.labels(examples), bilm, None)
    network.reset_parameters(torch.Generator().manual_seed(0))
    batches = Examples(found, examples, bilm.layers_of(kept=True)).batches(network, examples)
    expected = [answer for answer, _ in network.answer(batches, examples)]
    torch.set_default_device("meta")
    try:
        network.train().loss(batches, examples).backward()
        assert [answer for answer, _ in network.answer(batches, examples)] == expected
    finally:
        torch.set_default_device(None)
    for name, parameter in network.named_parameters():
        if parameter.requires_grad and "speaker" not in name:  # the data has no speakers
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name


@pytest.mark.gpu
@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_trained_on_a_gpu_and_answers_on_the_cpu(task, data, tmp_path, model_dir):
    result = run_task(task, data, tmp_path / "run", model_dir, epochs=200, device="cuda")
    assert result.best.dev.value == 100
    for device in ("cuda", "cpu"):
        run = TaskRun.load(tmp_path / "run", device=device, cache_dir=tmp_path / "layers")
        assert run.evaluate(find_split(data, "dev")).value == 100


@pytest.mark.parametrize("task", TASKS)
def test_the_same_seed_gives_the_same_model(task, data, tmp_path, model_dir):
    from safetensors.torch import load_file

    torch.manual_seed(1)
    for name in ("a", "b"):
        run_task(task, data, tmp_path / name, model_dir, epochs=2)
        torch.rand(5)
    a, b = (load_file(tmp_path / name / "model.safetensors") for name in ("a", "b"))
    assert a.keys() == b.keys()
    assert all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("task", ["srl"])
@pytest.mark.parametrize("embeddings", get_args(EmbeddingKind))
def test_every_condition_trains_and_answers(task, embeddings, data, tmp_path, model_dir):
    vectors = None
    if CONDITION_INPUTS[embeddings].needs_static or embeddings == "elmo":
        vectors = tmp_path / "vectors.txt"
        vectors.write_text("3 2\nthe 0.1 0.2\nbank 0.3 -0.4\nriver 1 2\n", encoding="utf-8")
    given = model_dir if CONDITION_INPUTS[embeddings].needs_bilm else None
    inputs = InputSettings(embeddings=embeddings, positions="both", characters=True)
    run_task(task, data, tmp_path / "run", given, inputs=inputs, vectors=vectors, epochs=2)
    run = TaskRun.load(tmp_path / "run", cache_dir=tmp_path / "layers")
    ((example, tags),) = run.predict(["the river *bank*"])
    assert len(tags) == len(example.tokens) == 3


@pytest.mark.parametrize("task", ["srl", "nli"])
def test_raw_text_that_the_task_cannot_read_is_told_with_its_number(
    task, data, tmp_path, model_dir
):
    run_task(task, data, tmp_path / "run", model_dir, epochs=1)
    run = TaskRun.load(tmp_path / "run")
    for bad in ("no mark and no tab", "", "*a* *b*", "* *", ["a"], [], ["*a*", "*b*", "*"], "\0"):
        given = f"'{re.escape(bad)}'" if isinstance(bad, str) and bad != "\0" else ""
        with pytest.raises(InputError, match=f"Text 2: .*{given}"):
            list(run.predict([TEXTS[task][0], bad]))
    with pytest.raises(TypeError, match="one string"):
        run.predict(TEXTS[task][0])
    with pytest.raises(TypeError, match=r"Text 1: .*7"):
        list(run.predict([["*a*", 7]]))
