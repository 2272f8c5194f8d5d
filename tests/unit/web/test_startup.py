"""Addresses, the names that a server answers to, and task runs that answer text after text."""

import pytest

from elmokit.errors import InputError
from elmokit.web.startup import ServerSettings, listen, load_task_run

from ...builders.task_models import toy_model, trained_classifier


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
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("sat 1 2\nocean 3 4\nnight 5 6\n", encoding="utf-8")
    toy_model().save(tmp_path / "bilm")
    trained = trained_classifier("sentiment", tmp_path, tmp_path / "bilm", vectors=vectors)
    texts = ["by the ocean", "a night"]
    expected = list(trained.predict_json(texts))
    run = load_task_run(tmp_path / "sentiment")
    vectors.unlink()
    assert list(run.predict_json(texts)) == expected
    load_task_run(tmp_path / "sentiment")
    assert "new words get no static vector" in caplog.text
    assert str(vectors) in caplog.text
