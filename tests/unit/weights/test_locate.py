import pytest

from elmokit.weights.locate import (
    PACKAGED_MODELS,
    find_model,
    lasting_name,
    path_of,
)


def test_a_model_directory_goes_before_a_packaged_model_and_other_directories_do_not(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ko").mkdir()
    assert find_model("ko") == PACKAGED_MODELS / "ko"
    assert find_model(tmp_path / "ko") == tmp_path / "ko"
    assert not caplog.records
    (tmp_path / "ko" / "config.json").touch()
    for _ in range(2):
        assert find_model("ko").resolve() == tmp_path / "ko"
    (record,) = caplog.records
    assert f"{tmp_path / 'ko'}, not the packaged model 'ko'" in record.getMessage()


def test_a_packaged_model_is_remembered_by_name_and_others_by_their_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert lasting_name(find_model("ko")) == "ko"
    assert lasting_name(tmp_path / "a" / ".." / "ko") == str(tmp_path / "ko")
    assert path_of("ko") == str(PACKAGED_MODELS / "ko")
    assert path_of(str(tmp_path / "ko")) == str(tmp_path / "ko")


def test_a_file_is_no_model_and_an_interrupted_save_is_told(tmp_path):
    (tmp_path / "model").touch()
    with pytest.raises(FileNotFoundError, match="is a file"):
        find_model(tmp_path / "model")
    (tmp_path / ".other.previous").mkdir()
    with pytest.raises(FileNotFoundError, match=r"interrupted: .*\.other\.previous"):
        find_model(tmp_path / "other")
