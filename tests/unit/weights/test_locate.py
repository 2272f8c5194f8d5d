import pytest

from elmokit.weights.locate import find_model


def test_a_path_is_returned(tmp_path):
    assert find_model(tmp_path) == tmp_path
    assert find_model(str(tmp_path)) == tmp_path


def test_home_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "model").mkdir()
    assert find_model("~/model") == tmp_path / "model"


def test_no_name_says_that_there_is_no_packaged_model_and_how_to_get_one():
    with pytest.raises(FileNotFoundError, match=r"none in the package") as raised:
        find_model()
    assert "elmokit pretrain" in str(raised.value)


def test_an_unknown_name_lists_what_was_tried(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no model 'small-english'") as raised:
        find_model("small-english")
    assert str(tmp_path / "small-english") in str(raised.value)
    assert "in the package" in str(raised.value)
