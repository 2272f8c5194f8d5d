"""`elmokit demo`: what it refuses at the door."""

import pytest

from elmokit.cli.commands.demo import demo


def test_a_directory_with_anything_in_it_is_refused_before_any_work(tmp_path):
    (tmp_path / "ko").mkdir()
    with pytest.raises(FileExistsError, match=r"not empty.*'ko'"):
        demo(output=tmp_path, language=["en"])
    assert [path.name for path in tmp_path.iterdir()] == ["ko"]
