"""Addresses, the names that a server answers to, and task runs that answer text after text."""

import pytest

from elmokit.errors import InputError
from elmokit.tasks.runs.run_dir import TaskRunConfig
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


def test_vectors_are_kept_in_memory_and_told_if_they_are_gone(tmp_path, caplog):
    vectors, table = tmp_path / "vectors.txt", tmp_path / "table.tsv"
    vectors.write_text("sat 1 2\nocean 3 4\nnight 5 6\n", encoding="utf-8")
    table.write_text("text\tlabel\nby the river\tgood\nI sat\tbad\n", encoding="utf-8")
    toy_model().save(tmp_path / "bilm")
    config = TaskRunConfig(
        task="sentiment", hidden_dims=(8,), train=TaskTrainConfig(epochs=1, batch_size=2)
    )
    train_task(
        config, table, table, tmp_path / "run", model=str(tmp_path / "bilm"), vectors=vectors,
        cache_dir=tmp_path / "layers",
    )  # fmt: skip
    texts = ["by the ocean", "a night"]
    expected = list(TaskRun.load(tmp_path / "run").predict_json(texts))
    run = load_task_run(tmp_path / "run")
    vectors.unlink()
    assert list(run.predict_json(texts)) == expected
    load_task_run(tmp_path / "run")
    assert "new words get no static vector" in caplog.text
    assert str(vectors) in caplog.text
