"""Pictures by matplotlib."""

import pytest

from elmokit.errors import InputError
from elmokit.files.pictures import check_picture_name, new_figure, write_picture

BEGINNINGS = {"a.png": b"\x89PNG", "a.PDF": b"%PDF", "a.svg": b"<?xml"}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_the_suffix_names_the_format(tmp_path, name):
    pytest.importorskip("matplotlib")
    check_picture_name(tmp_path / name)
    with pytest.raises(InputError, match=r"\.png"):
        check_picture_name(tmp_path / "a.gif")
    figure = new_figure(2, 1)
    assert figure.get_size_inches().tolist() == [2, 1]
    write_picture(figure, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(BEGINNINGS[name])
    assert [path.name for path in tmp_path.iterdir()] == [name]
