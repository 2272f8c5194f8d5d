import pytest

from elmokit.weights.locate import PACKAGED_MODELS, find_model, lasting_name, path_of


def test_a_model_directory_goes_before_a_packaged_model_and_other_directories_do_not(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "ko"
    own.mkdir()
    assert (find_model("ko"), find_model(own)) == (PACKAGED_MODELS / "ko", own)
    assert not caplog.records
    (own / "config.json").touch()
    assert find_model("ko").resolve() == find_model("ko").resolve() == own
    (record,) = caplog.records
    assert f"{own}, not the packaged model 'ko'" in record.getMessage()


def test_a_packaged_model_is_remembered_by_name_and_others_by_their_path(tmp_path):
    other = str(tmp_path / "ko")
    assert (lasting_name(find_model("ko")), lasting_name(tmp_path / "a/../ko")) == ("ko", other)
    assert (path_of("ko"), path_of(other)) == (str(PACKAGED_MODELS / "ko"), other)


def test_an_interrupted_save_is_told(tmp_path):
    (tmp_path / ".other.previous").mkdir()
    with pytest.raises(FileNotFoundError, match=r"interrupted: .*\.other\.previous"):
        find_model(tmp_path / "other")
