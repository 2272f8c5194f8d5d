"""`elmokit demo`: what it refuses at the door."""

import pytest

from elmokit.cli.commands.demo import demo


def test_a_directory_that_exists_is_refused_before_any_work(tmp_path):
    (tmp_path / "ko").mkdir()
    with pytest.raises(FileExistsError, match=r"/ko "):
        demo(output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["ko"]
