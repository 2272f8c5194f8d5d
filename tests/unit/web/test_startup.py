"""Addresses, the names that a server answers to, and task runs that answer text after text."""

import pytest

from elmokit.errors import InputError
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task
from elmokit.tasks.runs.training import TaskTrainConfig
from elmokit.web.startup import ServerSettings, listen, load_task_run

from ...builders.task_models import toy_model


@pytest.mark.parametrize(
    "options",
    [{"timeout_seconds": value} for value in (0.0, float("nan"), float("inf"))]
    + [{"api_key": value} for value in ("", "a b", "열쇠", "a\n")],
)
def test_settings_that_cannot_work_are_refused(options):
    with pytest.raises(InputError):
        ServerSettings(**options)


def test_an_address_that_cannot_be_listened_on_is_named():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port}.*--port"):
            listen("127.0.0.1", port)
    with pytest.raises(InputError, match=r"192\.0\.2\.1.*--host"):
        listen("192.0.2.1", 0)


TEXTS = ["by the ocean", "a night"]


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("sat 1 2\nocean 3 4\nnight 5 6\n", encoding="utf-8")
    return path


@pytest.fixture
def train(tmp_path):
    def train(vectors):
        toy_model().save(tmp_path / "bilm")
        table = tmp_path / "table.tsv"
        table.write_text("text\tlabel\nby the river\tgood\nI sat\tbad\n", encoding="utf-8")
        config = TaskRunConfig(
            task="sentiment", hidden_dims=(8,), inputs=InputSettings(),
            train=TaskTrainConfig(epochs=1, batch_size=2),
        )  # fmt: skip
        train_task(
            config, table, table, tmp_path / "run", model=str(tmp_path / "bilm"), vectors=vectors,
            cache_dir=tmp_path / "layers",
        )  # fmt: skip
        return tmp_path / "run"

    return train


def test_new_words_are_not_looked_up_in_the_file(train, vectors):
    run_dir = train(vectors)
    expected = list(TaskRun.load(run_dir).predict_json(TEXTS))
    run = load_task_run(run_dir)
    vectors.unlink()
    assert list(run.predict_json(TEXTS)) == expected
    assert {"ocean", "night"} <= set(run._maker.static.words)


def test_vectors_that_are_gone_are_told_at_once(train, vectors, caplog):
    run_dir = train(vectors)
    vectors.unlink()
    run = load_task_run(run_dir)
    assert "new words get no static vector" in caplog.text
    assert str(vectors) in caplog.text
    assert len(list(run.predict_json(TEXTS))) == 2


def test_words_that_a_fasttext_model_does_not_list_keep_their_vectors(train, tmp_path, caplog):
    gensim = pytest.importorskip("gensim")
    made = gensim.models.FastText(
        [["sat", "ocean", "night"]] * 5, vector_size=2, min_count=1, bucket=50, workers=1
    )
    path = tmp_path / "vectors.bin"
    gensim.models.fasttext.save_facebook_model(made, str(path))
    run = load_task_run(train(path))
    assert f"{path} is read again" in caplog.text
    list(run.predict_json(["oceans"]))
    assert "oceans" in run._maker.static.words
